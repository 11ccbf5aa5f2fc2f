#include "model/blocks/mlp_block.h"

#include "ops/gated_linear/gated_linear.h"

namespace pagoda {

Tensor MlpBlock::apply(const Step& step, const Tensor& x) const {
  return down.apply(step.exec, gate_up.apply_gated(step.exec, x, step.config.activation));
}

Result<MlpBlock> load_mlp_block(Exec& exec, const Checkpoint& checkpoint, const ModelConfig& config,
                                int layer) {
  const std::string prefix = fmt::format("model.layers.{}.mlp.", layer);
  const std::int64_t intermediate = config.layers[layer].intermediate_size;
  MlpBlock block;
  PAGODA_ASSIGN_OR_RETURN(block.gate_up,
                          load_projection(exec, checkpoint,
                                          {.parts = {{prefix + "gate_proj", intermediate},
                                                     {prefix + "up_proj", intermediate}},
                                           .joined = prefix + "gate_up_proj",
                                           .cols = config.hidden_size,
                                           .bias = config.mlp_bias,
                                           .use = WeightUse::kGated}));
  PAGODA_ASSIGN_OR_RETURN(block.down,
                          load_projection(exec, checkpoint,
                                          {.parts = {{prefix + "down_proj", config.hidden_size}},
                                           .cols = intermediate,
                                           .bias = config.mlp_bias}));
  return block;
}

}  // namespace pagoda
