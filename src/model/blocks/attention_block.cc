#include "model/blocks/attention_block.h"

#include <cmath>

#include "ops/attention/attention.h"
#include "ops/kv_write/kv_write.h"
#include "ops/rms_norm_rope/rms_norm_rope.h"
#include "ops/rope/rope.h"

namespace pagoda {

AttentionBlock::QueriesAndKeys AttentionBlock::turn(Exec& exec, const ModelConfig& config,
                                                    const Tensor& joined,
                                                    const Tensor& angles) const {
  const std::int64_t q_dim = std::int64_t{config.num_heads} * config.head_dim;
  const std::int64_t kv_dim = std::int64_t{config.num_kv_heads} * config.head_dim;
  const std::int64_t num_heads = config.num_heads + config.num_kv_heads;
  const RopeArgs style = {.style = config.rope_style};
  const Tensor heads = joined.slice(1, 0, q_dim + kv_dim).split_last(num_heads, config.head_dim);
  if (!q_norm.defined()) {
    const Tensor turned = rope(exec, heads, angles, style);
    return {turned.slice(1, 0, config.num_heads), turned.slice(1, config.num_heads, num_heads)};
  }
  const RmsNormRopeArgs args = {.norm = {.eps = config.rms_norm_eps}, .rope = style};
  return {rms_norm_rope(exec, heads.slice(1, 0, config.num_heads), q_norm, angles, args),
          rms_norm_rope(exec, heads.slice(1, config.num_heads, num_heads), k_norm, angles, args)};
}

Tensor AttentionBlock::apply(Exec& exec, const ModelConfig& config, const Tensor& angles,
                             const Tensor& x, const StepBatch& batch, KvStore& kv) const {
  const std::int64_t width = std::int64_t{config.num_kv_heads} * config.head_dim;
  const Tensor joined = qkv.apply(exec, x);  // [tokens, q_dim + 2 * width]
  const auto [q, k] = turn(exec, config, joined, angles);
  const Tensor v = joined.slice(1, joined.extent(1) - width, joined.extent(1))
                       .split_last(config.num_kv_heads, config.head_dim);
  const KvView view = kv_write(exec, kv.view(layer), k, v, batch);
  kv.rebind(layer, view);
  const float scale = 1.0f / std::sqrt(static_cast<float>(config.head_dim));
  const Tensor mixed =
      attention(exec, q, view, batch, {.scale = scale, .window = window});  // [tokens, q_dim]
  return output.apply(exec, mixed);
}

Result<AttentionBlock> load_attention_block(Exec& exec, const Checkpoint& checkpoint,
                                            const ModelConfig& config, const Family& family,
                                            int layer) {
  const std::string prefix = fmt::format("model.layers.{}.self_attn.", layer);
  const std::int64_t q_dim = std::int64_t{config.num_heads} * config.head_dim;
  const std::int64_t kv_dim = std::int64_t{config.num_kv_heads} * config.head_dim;
  AttentionBlock block;
  block.layer = layer;
  block.window = config.layer_windows[layer];
  PAGODA_ASSIGN_OR_RETURN(block.qkv, load_projection(exec, checkpoint,
                                                     {.parts = {{prefix + "q_proj", q_dim},
                                                                {prefix + "k_proj", kv_dim},
                                                                {prefix + "v_proj", kv_dim}},
                                                      .cols = config.hidden_size,
                                                      .bias = config.attention_bias}));
  if (family.qk_norm) {
    PAGODA_ASSIGN_OR_RETURN(block.q_norm,
                            load_norm(exec, checkpoint, prefix + "q_norm.weight", config.head_dim));
    PAGODA_ASSIGN_OR_RETURN(block.k_norm,
                            load_norm(exec, checkpoint, prefix + "k_norm.weight", config.head_dim));
  }
  PAGODA_ASSIGN_OR_RETURN(block.output,
                          load_projection(exec, checkpoint,
                                          {.parts = {{prefix + "o_proj", config.hidden_size}},
                                           .cols = q_dim,
                                           .bias = config.attention_output_bias}));
  return block;
}

}  // namespace pagoda
