// Threads from a system that may have none left: a limit of processes, a user's or a container's,
// stands in the way, or there is no memory for a stack. Whoever has begun something ends it on the
// way out; what is left of a command is one line and its exit status, and of a request a 503.
#pragma once

#include <fmt/core.h>

#include <future>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

namespace pagoda {

class NoThread : public std::runtime_error {
 public:
  explicit NoThread(const std::system_error& error)
      : std::runtime_error(
            fmt::format("[threads] expected the system to start one more thread, got: {} (ulimit "
                        "-u and a container's limit of processes bound them)",
                        error.code().message())) {}
};

// Starts a thread that calls `work()`. Throws NoThread.
template <typename Work>
std::thread start_thread(Work&& work) {
  try {
    return std::thread(std::forward<Work>(work));
  } catch (const std::system_error& error) {
    throw NoThread(error);
  }
}

// Starts a thread that makes the future's value, `work()`. Throws NoThread.
template <typename Work>
auto start_async(Work&& work) {
  try {
    return std::async(std::launch::async, std::forward<Work>(work));
  } catch (const std::system_error& error) {
    throw NoThread(error);
  }
}

}  // namespace pagoda
