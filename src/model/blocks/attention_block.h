// AttentionBlock: projections, positions, cache and attention of one layer.
#pragma once

#include "model/blocks/block_source.h"
#include "model/blocks/projection.h"
#include "model/step.h"

namespace pagoda {

struct AttentionBlock {
  // [(num_heads + 2 * num_kv_heads) * head_dim, hidden]: queries, keys, values. There are no rows
  // of values if keys serve as values, and only queries if the layer reads another layer's cache.
  Projection qkv;
  Tensor q_norm;  // [head_dim]; [num_heads * head_dim] for QkNorm::kRow; or undefined
  Tensor k_norm;  // [head_dim]; [num_kv_heads * head_dim] for QkNorm::kRow; or undefined
  Tensor v_norm;  // [head_dim] of ones, or undefined
  // [num_kv_heads, head_dim], or undefined: subtracted from keys before they are cached. It is the
  // mean of the rotated key bias over the positions below config.max_position_embeddings. Attention
  // need not add it back, as it shifts all scores of a query alike. Layers with a soft cap or with
  // sinks keep the bias in their keys.
  Tensor key_offset;
  Tensor sinks;       // [num_heads], or undefined
  Projection gate;    // [num_heads, hidden] or [num_heads * head_dim, hidden], or undefined
  Projection output;  // [hidden, num_heads * head_dim]
  int layer = 0;      // its index in the config and in the cache

  // Computes x [tokens, hidden] -> [tokens, hidden]. Writes the step's keys and values into the
  // layer's cache, unless the layer reads another layer's cache.
  Tensor apply(const Step& step, const Tensor& x) const;

  // Visits the projections in the order in which a step computes them.
  template <typename Visit>
  void for_each_projection(const Visit& visit) const {
    visit(qkv);
    if (gate.weight.defined()) visit(gate);
    visit(output);
  }
};

BlockSpec block_spec(const ModelConfig& config, const AttentionConfig& attention, int layer);

// Loads a layer's block. If its cache stores keys as codes, the query and key norms are balanced
// first (model/key_smoothing.h). A layer without these norms has its projections balanced instead.
// Its key bias then becomes key_offset, unless scores are capped or heads have sinks. Errors are the
// checkpoint's.
Result<AttentionBlock> load_block(const BlockSource& source, const AttentionConfig& attention);

}  // namespace pagoda
