// LogThread: writes the log's lines while it lives, so that no line delays the thread that logs it.
//
// Who writes to a pipe that is full, or to a terminal that Ctrl-S has stopped, waits until somebody
// reads. Here that is one thread, which does nothing else. What it has not got rid of waits for it,
// 1 MB of lines at most; past that the oldest are lost, and a line tells how many were.
#pragma once

#include <unistd.h>

#include <memory>
#include <thread>
#include <vector>

namespace spdlog::sinks {
class sink;
}

namespace pagoda {

class LogThread {
 public:
  // The bytes of lines that wait.
  static constexpr std::size_t kMaxWaitingBytes = 1 << 20;

  // Takes spdlog's default logger, and so do loggers that share its sinks from here on: each line
  // goes to the file `descriptor` in the order in which it was logged. Throws NoThread.
  explicit LogThread(int descriptor = STDERR_FILENO);
  // Gives what waits a second to be written and the default logger its sinks back. No other thread
  // may log meanwhile.
  ~LogThread();
  LogThread(const LogThread&) = delete;
  LogThread& operator=(const LogThread&) = delete;

 private:
  class Queue;
  using Sinks = std::vector<std::shared_ptr<spdlog::sinks::sink>>;
  const std::shared_ptr<Queue> queue_;
  std::thread thread_;
  const Sinks former_sinks_;
};

}  // namespace pagoda
