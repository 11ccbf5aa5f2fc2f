#include "model/blocks/attention_block.h"

#include "model/key_smoothing.h"
#include "ops/attention/attention.h"
#include "ops/rope_kv_write/rope_kv_write.h"

namespace pagoda {

Tensor AttentionBlock::apply(const Step& step, const Tensor& x) const {
  const LayerConfig& config = step.config.layers[layer];
  const Tensor joined = qkv.apply(step.exec, x);  // [tokens, q_dim + 2 * kv_dim]
  const RopeKvWriteResult written =
      rope_kv_write(step.exec, joined, q_norm, k_norm, step.angles[config.rope_table],
                    step.kv.view(layer), step.batch,
                    {.num_heads = config.num_heads,
                     .norm = {.eps = step.config.rms_norm_eps},
                     .rope = {.style = step.config.rope_tables[config.rope_table].style},
                     .key_offset = key_offset});
  step.kv.rebind(layer, written.view);
  const Tensor mixed =  // [tokens, q_dim]
      attention(step.exec, written.q, written.view, step.batch,
                {.scale = config.score_scale, .window = config.window});
  return output.apply(step.exec, mixed);
}

void AttentionBlock::set_key_offset(Exec& exec, const ModelConfig& config, int max_model_len) {
  if (key_bias.empty()) return;
  const LayerConfig& shape = config.layers[layer];
  key_offset = exec.upload<float>(
      mean_turned_bias(key_bias, config.rope_tables[shape.rope_table], max_model_len),
      {shape.num_kv_heads, shape.head_dim});
}

namespace {

Result<std::vector<float>> read_norm(const Checkpoint& checkpoint, const std::string& name,
                                     std::int64_t dim) {
  PAGODA_ASSIGN_OR_RETURN(const HostTensor tensor, checked_tensor(checkpoint, name, {dim}));
  return read_vector({&tensor, 1});
}

Status load_norms(Exec& exec, const Checkpoint& checkpoint, const std::string& prefix,
                  const LayerConfig& shape, RopeStyle style, KvFormat key_format,
                  AttentionBlock& block) {
  PAGODA_ASSIGN_OR_RETURN(std::vector<float> q_norm,
                          read_norm(checkpoint, prefix + "q_norm.weight", shape.head_dim));
  PAGODA_ASSIGN_OR_RETURN(std::vector<float> k_norm,
                          read_norm(checkpoint, prefix + "k_norm.weight", shape.head_dim));
  if (is_quantized(key_format)) balance_norms(q_norm, k_norm, style);
  block.q_norm = exec.upload<float>(q_norm, {shape.head_dim});
  block.k_norm = exec.upload<float>(k_norm, {shape.head_dim});
  return ok_status();
}

// Balances the projections of a layer without norms; its bias of keys is the balanced one.
Status smooth_projections(const LayerConfig& shape, RopeStyle style, ProjectionTensors& qkv,
                          AttentionBlock& block) {
  const bool has_bias = !qkv.biases.empty();
  balance_projections({.weight = qkv.weights[0],
                       .bias = has_bias ? &qkv.biases[0] : nullptr,
                       .num_heads = shape.num_heads},
                      {.weight = qkv.weights[1],
                       .bias = has_bias ? &qkv.biases[1] : nullptr,
                       .num_heads = shape.num_kv_heads},
                      shape.head_dim, style);
  if (has_bias) {
    PAGODA_ASSIGN_OR_RETURN(block.key_bias, read_vector({&qkv.biases[1], 1}));
  }
  return ok_status();
}

}  // namespace

Result<AttentionBlock> load_attention_block(Exec& exec, const Checkpoint& checkpoint,
                                            const ModelConfig& config, KvFormat key_format,
                                            int layer) {
  const LayerConfig& shape = config.layers[layer];
  const RopeStyle style = config.rope_tables[shape.rope_table].style;
  const std::string prefix = fmt::format("model.layers.{}.self_attn.", layer);
  const std::int64_t q_dim = std::int64_t{shape.num_heads} * shape.head_dim;
  const std::int64_t kv_dim = std::int64_t{shape.num_kv_heads} * shape.head_dim;
  AttentionBlock block;
  block.layer = layer;
  PAGODA_ASSIGN_OR_RETURN(ProjectionTensors qkv,
                          find_projection(checkpoint, {.parts = {{prefix + "q_proj", q_dim},
                                                                 {prefix + "k_proj", kv_dim},
                                                                 {prefix + "v_proj", kv_dim}},
                                                       .cols = config.hidden_size,
                                                       .bias = config.attention_bias}));
  if (is_quantized(key_format) && !shape.has_qk_norm) {
    PAGODA_RETURN_IF_ERROR(smooth_projections(shape, style, qkv, block));
  }
  PAGODA_ASSIGN_OR_RETURN(block.qkv, pack_projection(exec, qkv));
  if (shape.has_qk_norm) {
    PAGODA_RETURN_IF_ERROR(load_norms(exec, checkpoint, prefix, shape, style, key_format, block));
  }
  PAGODA_ASSIGN_OR_RETURN(block.output,
                          load_projection(exec, checkpoint,
                                          {.parts = {{prefix + "o_proj", config.hidden_size}},
                                           .cols = q_dim,
                                           .bias = config.attention_output_bias}));
  return block;
}

}  // namespace pagoda
