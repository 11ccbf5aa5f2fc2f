// The kinds of blocks that layers have, one for each alternative in LayerConfig. Each block's
// header declares block_spec() and load_block() for its config.
#pragma once

#include <variant>

#include "model/blocks/attention_block.h"
#include "model/blocks/dense_mlp_block.h"
#include "model/blocks/experts_block.h"

namespace pagoda {

using MixerBlock = std::variant<AttentionBlock>;
using MlpBlock = std::variant<DenseMlpBlock, ExpertsBlock>;

}  // namespace pagoda
