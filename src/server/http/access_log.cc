#include "server/http/access_log.h"

#include <spdlog/spdlog.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "core/json.h"
#include "server/base/json_body.h"
#include "server/base/request_json.h"

namespace pagoda {
namespace {

constexpr std::size_t kMaxShownBytes = 200;

// Returns a client's text as one printable word of a log line.
std::string shown(std::string_view text) {
  if (text.empty()) return "-";
  std::string word(text.substr(0, kMaxShownBytes));
  for (char& c : word) {
    if (c <= 0x20 || c > 0x7e) c = '?';
  }
  if (text.size() > kMaxShownBytes) word += "...";
  return word;
}

std::string text_line(const AccessRecord& record) {
  return fmt::format("[access] {} {} {} {:.1f} ms {} bytes {}{}{}{}{}", shown(record.method),
                     shown(record.path), record.status == 0 ? "-" : std::to_string(record.status),
                     1e3 * record.seconds, record.num_bytes, record.request_id,
                     record.client_name.empty() ? "" : " client=", record.client_name,
                     record.how_it_ended.empty() ? "" : ", ", record.how_it_ended);
}

// Returns a record as the members of a JSON object, without the braces.
std::string json_members(const AccessRecord& record) {
  const auto or_null = [](std::string_view text) -> RequestJson {
    if (text.empty()) return nullptr;
    return shown(text);
  };
  RequestJson line = {{"request_id", record.request_id},
                      {"method", or_null(record.method)},
                      {"path", or_null(record.path)},
                      {"status", nullptr},
                      {"duration_ms", std::round(1e4 * record.seconds) / 10},
                      {"bytes", record.num_bytes}};
  if (record.status != 0) line["status"] = record.status;
  if (!record.client_name.empty()) line["client"] = record.client_name;
  if (!record.how_it_ended.empty()) line["ended"] = record.how_it_ended;
  const std::string object = json_text(line);
  return object.substr(1, object.size() - 2);
}

}  // namespace

struct AccessLog::Impl {
  AnswerObserver observer;
  LogFormat format = LogFormat::kText;
  std::shared_ptr<spdlog::logger> logger;
};

AccessLog::AccessLog(AnswerObserver observer, LogFormat format) : impl_(std::make_unique<Impl>()) {
  impl_->observer = std::move(observer);
  impl_->format = format;
  const std::shared_ptr<spdlog::logger> log = spdlog::default_logger();
  impl_->logger = std::make_shared<spdlog::logger>(
      format == LogFormat::kJson ? std::string(kFieldsLogger) : log->name(), log->sinks().begin(),
      log->sinks().end());
  impl_->logger->set_level(log->level());
}

AccessLog::~AccessLog() = default;

void AccessLog::write(const AccessRecord& record) {
  if (impl_->observer) impl_->observer(record);
  spdlog::logger& log = *impl_->logger;
  if (!log.should_log(spdlog::level::info)) return;
  log.info("{}", impl_->format == LogFormat::kJson ? json_members(record) : text_line(record));
}

}  // namespace pagoda
