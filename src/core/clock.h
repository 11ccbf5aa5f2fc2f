// Time as a dependency, so that the scheduler and the engine can be tested with a fake one.
#pragma once

#include <chrono>
#include <cstdint>

namespace pagoda {

class Clock {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;  // monotonic; thread-safe

  static const Clock& system();
};

inline double seconds_between(Clock::TimePoint from, Clock::TimePoint to) {
  return std::chrono::duration<double>(to - from).count();
}

// Returns nanoseconds since 1970 by the machine's wall clock, which may jump. For comparison with
// the times of files. Thread-safe.
std::int64_t unix_time_ns();

}  // namespace pagoda
