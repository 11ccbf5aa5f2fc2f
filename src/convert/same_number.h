// Compares numbers that may differ by float32's rounding of one or two quotients.
#pragma once

#include <cmath>

namespace pagoda {

inline bool are_same(double a, double b) {
  constexpr double kRelative = 1e-6;
  return std::fabs(a - b) <= kRelative * std::fabs(b);
}

}  // namespace pagoda
