// Waits for something that another thread does.
#pragma once

#include <chrono>
#include <thread>

namespace pagoda {

// Returns true once `condition` holds; gives up after two minutes. Conditions take a few seconds at
// most on two idle cores: the limit guards against hanging, not against slow machines.
template <typename Condition>
bool eventually(Condition&& condition) {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > give_up) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace pagoda
