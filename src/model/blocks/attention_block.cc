#include "model/blocks/attention_block.h"

#include "ops/attention/attention.h"
#include "ops/kv_write/kv_write.h"
#include "ops/rms_norm_rope/rms_norm_rope.h"
#include "ops/rope/rope.h"

namespace pagoda {

AttentionBlock::QueriesAndKeys AttentionBlock::rotate(const Step& step,
                                                      const Tensor& joined) const {
  const LayerConfig& config = step.config.layers[layer];
  const std::int64_t num_q = config.num_heads;
  const std::int64_t num_heads = num_q + config.num_kv_heads;
  const Tensor& angles = step.angles[config.rope_table];
  const RopeArgs style = {.style = step.config.rope_tables[config.rope_table].style};
  const Tensor heads =
      joined.slice(1, 0, num_heads * config.head_dim).split_last(num_heads, config.head_dim);
  if (!q_norm.defined()) {
    const Tensor rotated = rope(step.exec, heads, angles, style);
    return {rotated.slice(1, 0, num_q), rotated.slice(1, num_q, num_heads)};
  }
  const RmsNormRopeArgs args = {.norm = {.eps = step.config.rms_norm_eps}, .rope = style};
  return {rms_norm_rope(step.exec, heads.slice(1, 0, num_q), q_norm, angles, args),
          rms_norm_rope(step.exec, heads.slice(1, num_q, num_heads), k_norm, angles, args)};
}

Tensor AttentionBlock::apply(const Step& step, const Tensor& x) const {
  const LayerConfig& config = step.config.layers[layer];
  const std::int64_t kv_dim = std::int64_t{config.num_kv_heads} * config.head_dim;
  const Tensor joined = qkv.apply(step.exec, x);  // [tokens, q_dim + 2 * kv_dim]
  const auto [q, k] = rotate(step, joined);
  const Tensor v = joined.slice(1, joined.extent(1) - kv_dim, joined.extent(1))
                       .split_last(config.num_kv_heads, config.head_dim);
  const KvView view = kv_write(step.exec, step.kv.view(layer), k, v, step.batch);
  step.kv.rebind(layer, view);
  const Tensor mixed =  // [tokens, q_dim]
      attention(step.exec, q, view, step.batch,
                {.scale = config.score_scale, .window = config.window});
  return output.apply(step.exec, mixed);
}

Result<AttentionBlock> load_attention_block(Exec& exec, const Checkpoint& checkpoint,
                                            const ModelConfig& config, int layer) {
  const LayerConfig& shape = config.layers[layer];
  const std::string prefix = fmt::format("model.layers.{}.self_attn.", layer);
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
