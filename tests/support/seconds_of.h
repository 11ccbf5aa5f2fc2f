// The clock time that a piece of work takes, for tests whose bound is the time of other work.
#pragma once

#include <chrono>

namespace pagoda::testing {

template <typename Work>
double seconds_of(const Work& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace pagoda::testing
