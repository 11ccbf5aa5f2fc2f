// ParallelMlpBlock: a dense MLP and a mixture of experts side by side, whose outputs are added up, as
// Gemma 4 has them. The mixture reads the residual stream by norms of its own.
#pragma once

#include "model/blocks/block_source.h"
#include "model/blocks/dense_mlp_block.h"
#include "model/blocks/experts_block.h"
#include "model/step.h"

namespace pagoda {

struct ParallelMlpBlock {
  DenseMlpBlock dense;
  Tensor dense_delta_norm;    // [hidden], of the dense MLP's output
  Tensor router_norm;         // [hidden], of the router's input
  Tensor experts_norm;        // [hidden], of the experts' input
  ExpertsBlock experts;       // without an expert that all tokens share
  Tensor experts_delta_norm;  // [hidden], of the experts' output

  // Computes x, the dense MLP's input, and the residual stream, both [tokens, hidden], -> [tokens,
  // hidden]
  Tensor apply(const Step& step, const Tensor& x, const Tensor& residual) const;

  // Visits the projections in the order in which a step computes them, but not the experts'.
  template <typename Visit>
  void for_each_projection(const Visit& visit) const {
    dense.for_each_projection(visit);
    experts.for_each_projection(visit);
  }
};

BlockSpec block_spec(const ModelConfig& config, const ParallelMlpConfig& mlp, int layer);

// Loads the block. Errors are the checkpoint's.
Result<ParallelMlpBlock> load_block(const BlockSource& source, const ParallelMlpConfig& mlp);

}  // namespace pagoda
