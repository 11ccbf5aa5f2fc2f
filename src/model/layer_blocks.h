// The kinds of blocks that layers have: the one list of what stands for the alternatives of
// LayerConfig. Each block's header gives block_spec() and load_block() of its config.
#pragma once

#include <variant>

#include "model/blocks/attention_block.h"
#include "model/blocks/dense_mlp_block.h"

namespace pagoda {

using MixerBlock = std::variant<AttentionBlock>;
using MlpBlock = std::variant<DenseMlpBlock>;

}  // namespace pagoda
