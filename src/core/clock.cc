#include "core/clock.h"

namespace pagoda {

const Clock& Clock::system() {
  class SystemClock final : public Clock {
    TimePoint now() const override { return std::chrono::steady_clock::now(); }
  };
  static const SystemClock clock;
  return clock;
}

}  // namespace pagoda
