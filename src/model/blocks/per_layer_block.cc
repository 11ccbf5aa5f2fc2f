#include "model/blocks/per_layer_block.h"

#include <cmath>
#include <numbers>

#include "model/family.h"
#include "ops/add_rms_norm/add_rms_norm.h"
#include "ops/gather_rows/gather_rows.h"
#include "ops/glu/glu.h"

namespace pagoda {

namespace {

constexpr float kInverseRoot2 = 1 / std::numbers::sqrt2_v<float>;

}  // namespace

Tensor PerLayerEmbedding::apply(const Step& step, const Tensor& x) const {
  const std::int64_t width = step.config.per_layer_width;
  const float root = std::sqrt(static_cast<float>(width));
  const Tensor gathered =
      gather_rows(step.exec, embedding, step.batch.token_ids, {.factor = kInverseRoot2 * root});
  const Shape rows = {gathered.num_elements() / width, width};
  // A norm of x / sqrt(hidden) is a norm of x whose epsilon is `hidden` times as large.
  const float eps = step.config.rms_norm_eps * static_cast<float>(step.config.hidden_size);
  const Tensor both =
      add_rms_norm(step.exec, gathered.view(rows), projection.apply(step.exec, x).view(rows),
                   Tensor(), {.eps = eps, .delta_norm = norm})
          .sum;
  return both.view(gathered.shape());
}

ProjectionSpec per_layer_embedding_spec(const ModelConfig& config) {
  return {.parts = {{"model.per_layer_model_projection",
                     std::int64_t{config.per_layer_width} * config.num_layers()}},
          .cols = config.hidden_size};
}

Result<PerLayerEmbedding> load_per_layer_embedding(Exec& exec, const Checkpoint& checkpoint,
                                                   const ModelConfig& config) {
  PerLayerEmbedding loaded;
  if (config.per_layer_width == 0) return loaded;
  const std::int64_t width = std::int64_t{config.per_layer_width} * config.num_layers();
  PAGODA_ASSIGN_OR_RETURN(const HostTensor embedding,
                          checked_tensor(checkpoint, "model.embed_tokens_per_layer.weight",
                                         {config.vocab_size, width}));
  PAGODA_ASSIGN_OR_RETURN(loaded.embedding, prepare_weight(exec, {&embedding, 1}));
  PAGODA_ASSIGN_OR_RETURN(loaded.projection,
                          load_projection(exec, checkpoint, per_layer_embedding_spec(config)));
  PAGODA_ASSIGN_OR_RETURN(loaded.norm,
                          load_norm(exec, checkpoint, "model.per_layer_projection_norm.weight",
                                    config.per_layer_width, config.norm_offset, kInverseRoot2));
  return loaded;
}

Tensor PerLayerBlock::apply(const Step& step, const Tensor& x, const Tensor& short_embedding,
                            int layer) const {
  const std::int64_t width = step.config.per_layer_width;
  const Tensor own = short_embedding.slice(1, layer * width, (layer + 1) * width);
  const Tensor gated = glu(step.exec, gate.apply(step.exec, x), own, step.config.glu);
  return output.apply(step.exec, gated);
}

BlockSpec per_layer_spec(const ModelConfig& config, int layer) {
  const std::string prefix = layer_prefix(layer);
  return {.projections = {{.role = ProjectionRole::kPerLayerGate,
                           .parts = {{prefix + "per_layer_input_gate", config.per_layer_width}},
                           .cols = config.hidden_size},
                          {.role = ProjectionRole::kPerLayerOutput,
                           .parts = {{prefix + "per_layer_projection", config.hidden_size}},
                           .cols = config.per_layer_width}}};
}

Result<PerLayerBlock> load_per_layer_block(const BlockSource& source) {
  PerLayerBlock block;
  PAGODA_ASSIGN_OR_RETURN(block.gate, load_projection(source, ProjectionRole::kPerLayerGate));
  PAGODA_ASSIGN_OR_RETURN(block.output, load_projection(source, ProjectionRole::kPerLayerOutput));
  return block;
}

}  // namespace pagoda
