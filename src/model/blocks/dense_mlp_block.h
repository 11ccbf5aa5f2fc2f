// DenseMlpBlock: the gated MLP of Llama-style layers.
#pragma once

#include "model/blocks/block_source.h"
#include "model/blocks/projection.h"
#include "model/step.h"

namespace pagoda {

struct DenseMlpBlock {
  Projection gate_up;  // [2 * intermediate, hidden]
  Projection down;     // [hidden, intermediate]

  // Computes x [tokens, hidden] -> [tokens, hidden]
  Tensor apply(const Step& step, const Tensor& x) const;

  // Visits the projections in the order in which a step computes them.
  template <typename Visit>
  void for_each_projection(const Visit& visit) const {
    visit(gate_up);
    visit(down);
  }
};

BlockSpec block_spec(const ModelConfig& config, const DenseMlpConfig& mlp, int layer);
// Returns the spec of an MLP whose modules' names begin with `prefix`. `joined` is the name behind
// it of gate and up as one.
BlockSpec dense_mlp_spec(const ModelConfig& config, const DenseMlpConfig& mlp,
                         const std::string& prefix, std::string_view joined = "gate_up_proj",
                         std::string_view down = "down_proj");

// Loads the block. Errors are the checkpoint's.
Result<DenseMlpBlock> load_block(const BlockSource& source, const DenseMlpConfig& mlp);

}  // namespace pagoda
