// Per-layer embeddings (Gemma 3n, 2025; Gemma 4, 2026): besides the usual embedding of a token,
// each layer has a short embedding of its own. It gates a term that the layer adds at its end.
#pragma once

#include "model/blocks/projection.h"
#include "model/step.h"

namespace pagoda {

// The short embeddings of all layers.
struct PerLayerEmbedding {
  Weight embedding;       // vocab x (layers * width); undefined if the model has none
  Projection projection;  // [layers * width, hidden]
  Tensor norm;            // [width], norm weights for the projection, times 1 / sqrt(2)

  bool defined() const { return embedding.defined(); }
  // Computes [tokens, layers * width] of the step's ids and their embedding x [tokens, hidden]:
  // (rms_norm(projection(x) / sqrt(hidden)) + sqrt(width) * embedding[ids]) / sqrt(2).
  Tensor apply(const Step& step, const Tensor& x) const;
};

// Gives the shape of PerLayerEmbedding::projection. REQUIRES: config.per_layer_width > 0.
ProjectionSpec per_layer_embedding_spec(const ModelConfig& config);

// Loads the embedding. Errors are the checkpoint's. Undefined if the config has no per_layer_width.
Result<PerLayerEmbedding> load_per_layer_embedding(Exec& exec, const Checkpoint& checkpoint,
                                                   const ModelConfig& config);

// The last part of a layer. It computes a term from the hidden state, gated by the layer's short
// embedding. The layer adds this term.
struct PerLayerBlock {
  Projection gate;    // [width, hidden]
  Projection output;  // [hidden, width]

  // Computes x [tokens, hidden], short_embedding [tokens, layers * width] -> [tokens, hidden]:
  // output(activation(gate(x)) * the layer's part of `short_embedding`).
  Tensor apply(const Step& step, const Tensor& x, const Tensor& short_embedding, int layer) const;

  // Visits the projections in the order in which a step computes them.
  template <typename Visit>
  void for_each_projection(const Visit& visit) const {
    visit(gate);
    visit(output);
  }
};

// REQUIRES: config.per_layer_width > 0.
BlockSpec per_layer_spec(const ModelConfig& config, int layer);

// Loads the block. Errors are the checkpoint's.
Result<PerLayerBlock> load_per_layer_block(const BlockSource& source);

}  // namespace pagoda
