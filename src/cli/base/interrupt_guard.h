// InterruptGuard: delays SIGINT, SIGTERM and SIGHUP while something exists that must be cleaned up
// first.
#pragma once

#include <csignal>

namespace pagoda {

// Blocks these signals in this thread and in the threads that it starts. The destructor unblocks
// them: a signal that came in between ends the process then.
class InterruptGuard {
 public:
  InterruptGuard() {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : kSignals) sigaddset(&signals, signal);
    pthread_sigmask(SIG_BLOCK, &signals, &before_);
  }
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  ~InterruptGuard() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  // Returns whether one of these signals is pending.
  bool is_pending() const {
    sigset_t pending;
    sigpending(&pending);
    for (const int signal : kSignals) {
      if (sigismember(&pending, signal) == 1) return true;
    }
    return false;
  }

 private:
  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
  sigset_t before_;
};

}  // namespace pagoda
