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

namespace {

std::string prefix_of(int layer) {
  return fmt::format("model.layers.{}.self_attn.", layer);
}

Result<std::vector<float>> read_values(const Checkpoint& checkpoint, const std::string& name,
                                       std::int64_t size) {
  PAGODA_ASSIGN_OR_RETURN(const HostTensor tensor, checked_tensor(checkpoint, name, {size}));
  return read_vector({&tensor, 1});
}

}  // namespace

Status smooth_keys(Exec& exec, const Checkpoint& checkpoint, const ModelConfig& config,
                   KvFormat format, int max_model_len, AttentionBlock& block) {
  if (!is_quantized(format)) return ok_status();
  const LayerConfig& shape = config.layers[block.layer];
  const RopeTable& table = config.rope_tables[shape.rope_table];
  const std::string prefix = prefix_of(block.layer);
  if (shape.has_qk_norm) {
    PAGODA_ASSIGN_OR_RETURN(std::vector<float> q_norm,
                            read_values(checkpoint, prefix + "q_norm.weight", shape.head_dim));
    PAGODA_ASSIGN_OR_RETURN(std::vector<float> k_norm,
                            read_values(checkpoint, prefix + "k_norm.weight", shape.head_dim));
    balance_norms(q_norm, k_norm, table.style);
    block.q_norm = exec.upload<float>(q_norm, {shape.head_dim});
    block.k_norm = exec.upload<float>(k_norm, {shape.head_dim});
  } else if (config.attention_bias) {
    PAGODA_ASSIGN_OR_RETURN(const std::vector<float> bias,
                            read_values(checkpoint, prefix + "k_proj.bias",
                                        std::int64_t{shape.num_kv_heads} * shape.head_dim));
    block.key_offset = exec.upload<float>(mean_turned_bias(bias, table, max_model_len),
                                          {shape.num_kv_heads, shape.head_dim});
  }
  return ok_status();
}

Result<AttentionBlock> load_attention_block(Exec& exec, const Checkpoint& checkpoint,
                                            const ModelConfig& config, int layer) {
  const LayerConfig& shape = config.layers[layer];
  const std::string prefix = prefix_of(layer);
  const std::int64_t q_dim = std::int64_t{shape.num_heads} * shape.head_dim;
  const std::int64_t kv_dim = std::int64_t{shape.num_kv_heads} * shape.head_dim;
  AttentionBlock block;
  block.layer = layer;
  PAGODA_ASSIGN_OR_RETURN(block.qkv, load_projection(exec, checkpoint,
                                                     {.parts = {{prefix + "q_proj", q_dim},
                                                                {prefix + "k_proj", kv_dim},
                                                                {prefix + "v_proj", kv_dim}},
                                                      .cols = config.hidden_size,
                                                      .bias = config.attention_bias}));
  if (shape.has_qk_norm) {
    PAGODA_ASSIGN_OR_RETURN(block.q_norm,
                            load_norm(exec, checkpoint, prefix + "q_norm.weight", shape.head_dim));
    PAGODA_ASSIGN_OR_RETURN(block.k_norm,
                            load_norm(exec, checkpoint, prefix + "k_norm.weight", shape.head_dim));
  }
  PAGODA_ASSIGN_OR_RETURN(block.output,
                          load_projection(exec, checkpoint,
                                          {.parts = {{prefix + "o_proj", config.hidden_size}},
                                           .cols = q_dim,
                                           .bias = config.attention_output_bias}));
  return block;
}

}  // namespace pagoda
