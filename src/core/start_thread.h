// Threads from a system that may have none left: a limit of processes, a user's or a container's,
// stands in the way, or there is no memory for a stack. Callers end what they have begun on the way
// out; what is left of a command is one line and its exit status, and of a request a 503.
#pragma once

#include <fmt/core.h>

#include <chrono>
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

// A thread that a reader or a file system may hold up for good. Its end waits a second for it, and
// then leaves it behind: what the thread uses must be its own, or shared with it.
class StallableThread {
 public:
  // Starts a thread that calls `work()`. Throws NoThread.
  template <typename Work>
  explicit StallableThread(Work work) {
    std::promise<void> ended;
    ended_ = ended.get_future();
    thread_ = start_thread([work = std::move(work), ended = std::move(ended)]() mutable {
      work();
      ended.set_value();
    });
  }
  // Does not tell the thread to end.
  ~StallableThread() {
    if (ended_.wait_for(std::chrono::seconds(1)) == std::future_status::ready) {
      thread_.join();
    } else {
      thread_.detach();
    }
  }
  StallableThread(const StallableThread&) = delete;
  StallableThread& operator=(const StallableThread&) = delete;

 private:
  std::future<void> ended_;
  std::thread thread_;
};

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
