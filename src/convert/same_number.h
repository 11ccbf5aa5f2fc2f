// Whether two numbers are the same but for float32's rounding of a quotient or two.
#pragma once

#include <cmath>

namespace pagoda {

inline bool are_same(double a, double b) {
  constexpr double kRelative = 1e-6;
  return std::fabs(a - b) <= kRelative * std::fabs(b);
}

}  // namespace pagoda
