#include "quant/super_block.h"

namespace pagoda {

void decode(const SuperBlock& block, int group_size, float* values) {
  for (int i = 0; i < SuperBlock::kValues; ++i) {
    const int group = i / group_size;
    const float scale = block.scale * static_cast<float>(block.scales[group]);
    const float minimum = block.minimum_scale * static_cast<float>(block.minima[group]);
    const float product = scale * static_cast<float>(block.q[i]);
    values[i] = product - minimum;
  }
}

}  // namespace pagoda
