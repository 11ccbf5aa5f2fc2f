// AttentionBlock: projections, positions, cache and attention of one layer.
#pragma once

#include "model/blocks/projection.h"
#include "model/step.h"

namespace pagoda {

struct AttentionBlock {
  Projection qkv;     // [(num_heads + 2 * num_kv_heads) * head_dim, hidden]
  Tensor q_norm;      // [head_dim], or undefined
  Tensor k_norm;      // [head_dim], or undefined
  Tensor key_offset;  // [num_kv_heads, head_dim], or undefined: what the cache's keys lack
  Projection output;  // [hidden, num_heads * head_dim]
  int layer = 0;      // of the config, and of the cache

  // Computes x [tokens, hidden] -> [tokens, hidden]; writes the step's keys and values into its
  // cache.
  Tensor apply(const Step& step, const Tensor& x) const;
};

// Takes from a layer's keys what makes them hard to quantise (model/key_smoothing.h), where its cache
// has codes of them: norms are balanced; a bias that no norm follows becomes an offset, its mean
// over the positions below max_model_len. Attention needs not know the offset: no config here has a
// soft cap or sinks. Errors: the checkpoint's.
Status smooth_keys(Exec& exec, const Checkpoint& checkpoint, const ModelConfig& config,
                   KvFormat format, int max_model_len, AttentionBlock& block);

Result<AttentionBlock> load_attention_block(Exec& exec, const Checkpoint& checkpoint,
                                            const ModelConfig& config, int layer);

}  // namespace pagoda
