#include "server/access_log.h"

#include <spdlog/async.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <string>
#include <utility>

namespace pagoda {
namespace {

constexpr std::size_t kMaxWaiting = 4096;  // lines
constexpr std::size_t kMaxShownBytes = 200;

// Makes a word of a log line of what a client sent.
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

struct AccessLog::Impl {
  AnswerObserver observer;
  std::shared_ptr<spdlog::details::thread_pool> thread =
      std::make_shared<spdlog::details::thread_pool>(kMaxWaiting, 1);
  std::shared_ptr<spdlog::logger> logger;
};

AccessLog::AccessLog(AnswerObserver observer) : impl_(std::make_unique<Impl>()) {
  impl_->observer = std::move(observer);
  const std::shared_ptr<spdlog::logger> log = spdlog::default_logger();
  impl_->logger = std::make_shared<spdlog::async_logger>(
      log->name(), log->sinks().begin(), log->sinks().end(), impl_->thread,
      spdlog::async_overflow_policy::overrun_oldest);
  impl_->logger->set_level(log->level());
}

AccessLog::~AccessLog() = default;

void AccessLog::write(const AccessRecord& record) {
  if (impl_->observer) impl_->observer(record);
  spdlog::logger& log = *impl_->logger;
  if (!log.should_log(spdlog::level::info)) return;
  log.info("[access] {} {} {} {:.1f} ms {} bytes {}{}{}", shown(record.method), shown(record.path),
           record.status == 0 ? "-" : std::to_string(record.status), 1e3 * record.seconds,
           record.num_bytes, record.request_id, record.how_it_ended.empty() ? "" : ", ",
           record.how_it_ended);
}

}  // namespace pagoda
