// MlpBlock: the gated MLP of Llama-style layers.
#pragma once

#include "model/blocks/projection.h"
#include "model/step.h"

namespace pagoda {

struct MlpBlock {
  Projection gate_up;  // [2 * intermediate, hidden]
  Projection down;     // [hidden, intermediate]

  // Computes x [tokens, hidden] -> [tokens, hidden]
  Tensor apply(const Step& step, const Tensor& x) const;
};

Result<MlpBlock> load_mlp_block(Exec& exec, const Checkpoint& checkpoint, const ModelConfig& config,
                                int layer);

}  // namespace pagoda
