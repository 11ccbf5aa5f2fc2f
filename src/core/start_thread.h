// Starts threads. The system may refuse one: a user's or a container's limit of processes is
// reached, or there is no memory for a stack. Then NoThread is thrown, and destructors end what the
// caller has begun. A command ends with one line and its exit status, a request with a 503.
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

// A thread that a reader or a file system may block forever. The destructor waits a second for the
// thread and then detaches it. So the thread must own, or share the ownership of, all that it uses.
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

// Starts a thread that computes the future's value, `work()`. Throws NoThread.
template <typename Work>
auto start_async(Work&& work) {
  try {
    return std::async(std::launch::async, std::forward<Work>(work));
  } catch (const std::system_error& error) {
    throw NoThread(error);
  }
}

}  // namespace pagoda
