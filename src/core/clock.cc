#include "core/clock.h"

namespace pagoda {

const Clock& Clock::system() {
  class SystemClock final : public Clock {
    TimePoint now() const override { return std::chrono::steady_clock::now(); }
  };
  static const SystemClock clock;
  return clock;
}

std::int64_t unix_time_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace pagoda
