#include "server/access_log.h"

#include <spdlog/async.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <string>

namespace pagoda {
namespace {

constexpr std::size_t kMaxWaiting = 4096;  // lines
constexpr std::size_t kMaxShownBytes = 200;

// What a client sent, fit for a word of a line.
std::string shown(std::string_view text) {
  if (text.empty()) return "-";
  std::string word(text.substr(0, kMaxShownBytes));
  for (char& c : word) {
    if (c <= 0x20 || c > 0x7e) c = '?';
  }
  if (text.size() > kMaxShownBytes) word += "...";
  return word;
}

}  // namespace

AccessLog::AccessLog() {
  const std::shared_ptr<spdlog::logger> log = spdlog::default_logger();
  thread_ = std::make_shared<spdlog::details::thread_pool>(kMaxWaiting, 1);
  logger_ = std::make_shared<spdlog::async_logger>(log->name(), log->sinks().begin(),
                                                   log->sinks().end(), thread_,
                                                   spdlog::async_overflow_policy::overrun_oldest);
  logger_->set_level(log->level());
}

AccessLog::~AccessLog() = default;

void AccessLog::write(const AccessRecord& record) {
  if (!logger_->should_log(spdlog::level::info)) return;
  logger_->info("[access] {} {} {} {:.1f} ms {} bytes {}{}{}", shown(record.method),
                shown(record.path), record.status == 0 ? "-" : std::to_string(record.status),
                1e3 * record.seconds, record.num_bytes, record.request_id,
                record.how_it_ended.empty() ? "" : ", ", record.how_it_ended);
}

}  // namespace pagoda
