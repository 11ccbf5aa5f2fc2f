// Waiting for what another thread does.
#pragma once

#include <chrono>
#include <thread>

namespace pagoda {

// True once `condition` holds; gives up after ten seconds.
template <typename Condition>
bool eventually(Condition&& condition) {
  for (int i = 0; i < 10000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

}  // namespace pagoda
