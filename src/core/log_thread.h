// LogThread: writes the log's lines while it lives, so that no line delays the thread that logs it.
//
// A write to a pipe that is full, or to a terminal that Ctrl-S has stopped, waits for the reader. Here
// one thread writes and does nothing else. Lines that are not written yet wait for it, 1 MB at most;
// past that the oldest are lost, and a line tells how many were.
#pragma once

#include <unistd.h>

#include <memory>
#include <vector>

#include "core/start_thread.h"

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
  StallableThread thread_;
  const Sinks former_sinks_;
};

}  // namespace pagoda
