// AttentionBlock: projections, positions, cache and attention of one layer.
#pragma once

#include "model/blocks/block_source.h"
#include "model/blocks/projection.h"
#include "model/step.h"

namespace pagoda {

struct AttentionBlock {
  // [(num_heads + 2 * num_kv_heads) * head_dim, hidden]: queries, keys, values. Without values where
  // keys are values, and queries alone where the layer reads another one's cache.
  Projection qkv;
  Tensor q_norm;  // [head_dim], [num_heads * head_dim] of QkNorm::kRow, or undefined
  Tensor k_norm;  // [head_dim], [num_kv_heads * head_dim], or undefined
  Tensor v_norm;  // [head_dim] of ones, or undefined
  // [num_kv_heads, head_dim], or undefined: what the cache's keys lack. It is the mean of a key bias,
  // rotated, over the positions below config.max_position_embeddings. Attention needs not know it:
  // layers with a soft cap keep the bias, and no family has sinks.
  Tensor key_offset;
  Projection output;  // [hidden, num_heads * head_dim]
  int layer = 0;      // of the config, and of the cache

  // Computes x [tokens, hidden] -> [tokens, hidden]; writes the step's keys and values into its
  // cache, unless it reads another layer's.
  Tensor apply(const Step& step, const Tensor& x) const;

  // Visits in the order of a step.
  template <typename Visit>
  void for_each_projection(const Visit& visit) const {
    visit(qkv);
    visit(output);
  }
};

BlockSpec block_spec(const ModelConfig& config, const AttentionConfig& attention, int layer);

// Loads a layer's block. Where its cache has codes of keys, the norms are balanced first, or the
// projections where no norm follows them (model/key_smoothing.h). A bias of keys gives the offset
// then, unless scores are capped. Errors: the checkpoint's.
Result<AttentionBlock> load_block(const BlockSource& source, const AttentionConfig& attention);

}  // namespace pagoda
