// AttentionBlock: projections, positions, cache and attention of one layer.
#pragma once

#include "model/blocks/projection.h"
#include "model/step.h"

namespace pagoda {

struct AttentionBlock {
  Projection qkv;     // [(num_heads + 2 * num_kv_heads) * head_dim, hidden]
  Tensor q_norm;      // [head_dim], or undefined
  Tensor k_norm;      // [head_dim], or undefined
  Projection output;  // [hidden, num_heads * head_dim]
  int layer = 0;      // of the config, and of the cache

  // Computes x [tokens, hidden] -> [tokens, hidden]; writes the step's keys and values into its
  // cache.
  Tensor apply(const Step& step, const Tensor& x) const;
};

Result<AttentionBlock> load_attention_block(Exec& exec, const Checkpoint& checkpoint,
                                            const ModelConfig& config, int layer);

}  // namespace pagoda
