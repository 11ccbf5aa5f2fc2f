#include "core/log_thread.h"

#include <poll.h>
#include <spdlog/details/os.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/sink.h>
#include <spdlog/spdlog.h>

#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace pagoda {
namespace {

std::string_view color_of(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::debug:
      return "\033[36m";  // cyan
    case spdlog::level::info:
      return "\033[32m";  // green
    case spdlog::level::warn:
      return "\033[33m\033[1m";  // bold yellow
    default:
      return "\033[31m\033[1m";  // bold red
  }
}

// Writes a text, and waits until all of it has been read or fits in the pipe. Text that cannot be
// written at all is dropped.
void write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t num_written = ::write(descriptor, text.data(), text.size());
    if (num_written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(num_written));
    } else if (errno == EAGAIN) {  // another process that shares the file may have set O_NONBLOCK
      pollfd room = {.fd = descriptor, .events = POLLOUT, .revents = 0};
      ::poll(&room, 1, -1);
    } else if (errno != EINTR) {
      return;
    }
  }
}

}  // namespace

// The lines that wait to be written. The queue outlives the LogThread if the writing thread still
// waits for a reader.
class LogThread::Queue final : public spdlog::sinks::sink {
 public:
  explicit Queue(int descriptor)
      : descriptor_(descriptor),
        logger_name_(spdlog::default_logger_raw()->name()),
        has_colors_(::isatty(descriptor) == 1 && spdlog::details::os::is_color_terminal()),
        formatter_(std::make_unique<spdlog::pattern_formatter>()) {}

  void log(const spdlog::details::log_msg& message) override {
    const std::lock_guard lock(mutex_);
    lines_.push_back(line_of(message));
    num_bytes_ += lines_.back().size();
    while (num_bytes_ > kMaxWaitingBytes && lines_.size() > 1) {
      num_bytes_ -= lines_.front().size();
      lines_.pop_front();
      ++num_lost_;
    }
    changed_.notify_all();
  }

  void flush() override {}
  void set_pattern(const std::string& pattern) override {
    set_formatter(std::make_unique<spdlog::pattern_formatter>(pattern));
  }
  void set_formatter(std::unique_ptr<spdlog::formatter> formatter) override {
    const std::lock_guard lock(mutex_);
    formatter_ = std::move(formatter);
  }

  void write_until_ended() {
    while (const std::optional<std::string> line = next()) write_all(descriptor_, *line);
  }

  // Makes write_until_ended() return once all lines are written.
  void end() {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
    changed_.notify_all();
  }

 private:
  // Formats a line. The caller holds the mutex.
  std::string line_of(const spdlog::details::log_msg& message) {
    spdlog::memory_buf_t text;
    formatter_->format(message, text);
    std::string line(text.data(), text.size());
    if (has_colors_ && message.color_range_end > message.color_range_start) {
      line.insert(message.color_range_end, "\033[m");
      line.insert(message.color_range_start, color_of(message.level));
    }
    return line;
  }

  // Returns the next line, or nothing if the queue has ended and all lines were returned.
  std::optional<std::string> next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !lines_.empty() || is_ending_; });
    if (const std::uint64_t num_lost = std::exchange(num_lost_, 0); num_lost > 0) {
      const std::string text =
          fmt::format("[log] {} lines are lost here: nobody has read them in time", num_lost);
      return line_of({logger_name_, spdlog::level::warn, text});
    }
    if (lines_.empty()) return std::nullopt;
    std::string line = std::move(lines_.front());
    lines_.pop_front();
    num_bytes_ -= line.size();
    return line;
  }

  const int descriptor_;
  const std::string logger_name_;
  const bool has_colors_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::unique_ptr<spdlog::formatter> formatter_;
  std::deque<std::string> lines_;
  std::size_t num_bytes_ = 0;   // size of lines_
  std::uint64_t num_lost_ = 0;  // lines lost since the last line that says so
  bool is_ending_ = false;
};

LogThread::LogThread(int descriptor)
    : queue_(std::make_shared<Queue>(descriptor)),
      thread_([queue = queue_] { queue->write_until_ended(); }),
      former_sinks_(std::exchange(spdlog::default_logger_raw()->sinks(), {queue_})) {}

LogThread::~LogThread() {
  spdlog::default_logger_raw()->sinks() = former_sinks_;
  queue_->end();
}

}  // namespace pagoda
