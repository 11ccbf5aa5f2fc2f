// The kinds of blocks that layers have, one for each alternative in LayerConfig. Each block's
// header declares block_spec() and load_block() for its config.
#pragma once

#include <variant>

#include "model/blocks/attention_block.h"
#include "model/blocks/dense_mlp_block.h"
#include "model/blocks/experts_block.h"
#include "model/blocks/parallel_mlp_block.h"

namespace pagoda {

using MixerBlock = std::variant<AttentionBlock>;
using MlpBlock = std::variant<DenseMlpBlock, ExpertsBlock, ParallelMlpBlock>;

// Returns the mixture of a layer; null if there is none.
inline const ExpertsBlock* experts_of(const MlpBlock& mlp) {
  if (const auto* const both = std::get_if<ParallelMlpBlock>(&mlp)) return &both->experts;
  return std::get_if<ExpertsBlock>(&mlp);
}

}  // namespace pagoda
