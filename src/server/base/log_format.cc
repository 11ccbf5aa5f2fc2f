#include "server/base/log_format.h"

#include <fmt/chrono.h>
#include <spdlog/formatter.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <iterator>
#include <memory>
#include <string>

#include "core/json.h"
#include "server/base/json_body.h"

namespace pagoda {
namespace {

class JsonFormatter : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& line) override {
    const auto time = std::chrono::time_point_cast<std::chrono::milliseconds>(message.time);
    const auto level = spdlog::level::to_string_view(message.level);
    fmt::format_to(std::back_inserter(line), R"({{"time":"{:%Y-%m-%dT%H:%M:}{:%S}Z","level":"{}",)",
                   fmt::gmtime(std::chrono::system_clock::to_time_t(time)),
                   time.time_since_epoch() % std::chrono::minutes(1),
                   std::string_view(level.data(), level.size()));
    const std::string_view payload(message.payload.data(), message.payload.size());
    const std::string_view logger(message.logger_name.data(), message.logger_name.size());
    if (logger == kFieldsLogger) {
      fmt::format_to(std::back_inserter(line), "{}}}\n", payload);
    } else {
      fmt::format_to(std::back_inserter(line), "\"message\":{}}}\n",
                     json_text(nlohmann::json(payload)));
    }
  }

  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<JsonFormatter>();
  }
};

}  // namespace

void use_log_format(LogFormat format) {
  if (format == LogFormat::kJson) {
    spdlog::default_logger()->set_formatter(std::make_unique<JsonFormatter>());
  } else {
    spdlog::default_logger()->set_pattern("%+");
  }
}

}  // namespace pagoda
