// ExpertsBlock: a mixture of experts (Shazeer et al., 2017, arXiv:1701.06538; Mixtral, 2024,
// arXiv:2401.04088). A router chooses experts for each token, and their outputs are added up,
// weighted. An expert that all tokens share may add its output, too (DeepSeekMoE, 2024,
// arXiv:2401.06066).
#pragma once

#include <optional>

#include "model/blocks/block_source.h"
#include "model/blocks/dense_mlp_block.h"
#include "model/blocks/projection.h"
#include "model/step.h"
#include "ops/route/route.h"

namespace pagoda {

// The MLP of an expert is down(activation(gate(x)) * up(x)).
struct ExpertsBlock {
  Projection router;  // [experts, hidden], float32 whatever the checkpoint has
  RouteArgs choice;
  ExpertWeight gate_up;  // [2 * intermediate, hidden] for each expert
  ExpertWeight down;     // [hidden, intermediate] for each expert
  Tensor gate_up_bias;   // [experts, 2 * intermediate] float32, or undefined
  Tensor down_bias;      // [experts, hidden] float32, or undefined
  std::optional<DenseMlpBlock> shared;
  Projection shared_gate;  // [1, hidden], or undefined

  // Computes x [tokens, hidden] -> [tokens, hidden]
  Tensor apply(const Step& step, const Tensor& x) const { return apply(step, x, x); }
  // Does the same with another input of the router, [tokens, hidden].
  Tensor apply(const Step& step, const Tensor& x, const Tensor& routed) const;

  // Returns the bytes of the experts that a token has chosen.
  std::int64_t num_chosen_bytes() const;

  // Visits the projections in the order in which a step computes them, but not the experts'.
  template <typename Visit>
  void for_each_projection(const Visit& visit) const {
    visit(router);
    if (shared) shared->for_each_projection(visit);
    if (shared_gate.weight.defined()) visit(shared_gate);
  }
};

BlockSpec block_spec(const ModelConfig& config, const ExpertsConfig& mlp, int layer);

// Loads the block. Errors are the checkpoint's.
Result<ExpertsBlock> load_block(const BlockSource& source, const ExpertsConfig& mlp);

}  // namespace pagoda
