// InterruptGuard: puts off SIGINT, SIGTERM and SIGHUP while something lives that must be put away
// first.
#pragma once

#include <csignal>

namespace pagoda {

// Blocks the signals of this thread and of those it starts. Destruction lets them through again:
// one that came in the meantime ends the process then, as it would have at once.
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

  // Returns whether one of them has come.
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
