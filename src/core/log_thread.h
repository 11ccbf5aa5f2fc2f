// LogThread: writes the log's lines while it lives, so that no line delays the thread that logs it.
//
// A write to a full pipe, or to a terminal that Ctrl-S has stopped, waits for the reader. So one
// thread does nothing but write. Up to 1 MB of lines wait for it in a queue; beyond that the oldest
// lines are lost, and a line in the log says how many.
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
  // The most bytes of lines that wait to be written.
  static constexpr std::size_t kMaxWaitingBytes = 1 << 20;

  // Replaces the sinks of spdlog's default logger. Its lines, and those of loggers that copy its
  // sinks from then on, go to the file `descriptor` in the order of logging. Throws NoThread.
  explicit LogThread(int descriptor = STDERR_FILENO);
  // Restores the default logger's sinks, and waits at most a second until all lines are written. No
  // other thread may log meanwhile.
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
