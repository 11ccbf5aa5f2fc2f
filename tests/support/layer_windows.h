// The windows of a config's layers, for tests that compare them all at once.
#pragma once

#include <vector>

#include "model/model_config.h"

namespace pagoda::testing {

inline std::vector<int> windows_of(const ModelConfig& config) {
  std::vector<int> windows;
  for (const LayerConfig& layer : config.layers) windows.push_back(layer.attention().window);
  return windows;
}

}  // namespace pagoda::testing
