#include "model/blocks/dense_mlp_block.h"

#include "ops/gated_linear/gated_linear.h"

namespace pagoda {

Tensor DenseMlpBlock::apply(const Step& step, const Tensor& x) const {
  return down.apply(step.exec, gate_up.apply_gated(step.exec, x, step.config.activation));
}

BlockSpec block_spec(const ModelConfig& config, const DenseMlpConfig& mlp, int layer) {
  const std::string prefix = layer_prefix(layer) + "mlp.";
  return {.projections = {{.role = ProjectionRole::kGateUp,
                           .parts = {{prefix + "gate_proj", mlp.intermediate_size},
                                     {prefix + "up_proj", mlp.intermediate_size}},
                           .joined = prefix + "gate_up_proj",
                           .cols = config.hidden_size,
                           .bias = config.mlp_bias,
                           .use = WeightUse::kGated},
                          {.role = ProjectionRole::kDown,
                           .parts = {{prefix + "down_proj", config.hidden_size}},
                           .cols = mlp.intermediate_size,
                           .bias = config.mlp_bias}}};
}

Result<DenseMlpBlock> load_block(const BlockSource& source, const DenseMlpConfig&) {
  DenseMlpBlock block;
  PAGODA_ASSIGN_OR_RETURN(block.gate_up, load_projection(source, ProjectionRole::kGateUp));
  PAGODA_ASSIGN_OR_RETURN(block.down, load_projection(source, ProjectionRole::kDown));
  return block;
}

}  // namespace pagoda
