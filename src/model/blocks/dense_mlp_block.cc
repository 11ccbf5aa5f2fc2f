#include "model/blocks/dense_mlp_block.h"

#include "model/family.h"
#include "ops/gated_linear/gated_linear.h"

namespace pagoda {

Tensor DenseMlpBlock::apply(const Step& step, const Tensor& x) const {
  return down.apply(step.exec, gate_up.apply_gated(step.exec, x, step.config.glu));
}

BlockSpec block_spec(const ModelConfig& config, const DenseMlpConfig& mlp, int layer) {
  return dense_mlp_spec(config, mlp, layer_prefix(layer) + "mlp.");
}

BlockSpec dense_mlp_spec(const ModelConfig& config, const DenseMlpConfig& mlp,
                         const std::string& prefix, std::string_view joined,
                         std::string_view down) {
  return {.projections = {{.role = ProjectionRole::kGateUp,
                           .parts = {{prefix + "gate_proj", mlp.intermediate_size},
                                     {prefix + "up_proj", mlp.intermediate_size}},
                           .joined = prefix + std::string(joined),
                           .cols = config.hidden_size,
                           .bias = config.mlp_bias,
                           .use = WeightUse::kGated},
                          {.role = ProjectionRole::kDown,
                           .parts = {{prefix + std::string(down), config.hidden_size}},
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
