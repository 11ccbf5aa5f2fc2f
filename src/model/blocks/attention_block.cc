#include "model/blocks/attention_block.h"

#include <cmath>

#include "ops/attention/attention.h"
#include "ops/kv_write/kv_write.h"
#include "ops/rms_norm/rms_norm.h"
#include "ops/rope/rope.h"

namespace pagoda {

Tensor AttentionBlock::apply(Exec& exec, const ModelConfig& config, const Tensor& rope_inv_freq,
                             const Tensor& x, const StepBatch& batch, KvStore& kv) const {
  const std::int64_t q_dim = std::int64_t{config.num_heads} * config.head_dim;
  const std::int64_t kv_dim = std::int64_t{config.num_kv_heads} * config.head_dim;
  const Tensor joined = qkv.apply(exec, x);  // [tokens, q_dim + 2 * kv_dim]
  Tensor q = joined.slice(1, 0, q_dim).split_last(config.num_heads, config.head_dim);
  Tensor k =
      joined.slice(1, q_dim, q_dim + kv_dim).split_last(config.num_kv_heads, config.head_dim);
  const Tensor v = joined.slice(1, q_dim + kv_dim, q_dim + 2 * kv_dim)
                       .split_last(config.num_kv_heads, config.head_dim);
  if (q_norm.defined()) {
    q = rms_norm(exec, q, q_norm, {.eps = config.rms_norm_eps});
    k = rms_norm(exec, k, k_norm, {.eps = config.rms_norm_eps});
  }
  q = rope(exec, q, batch.positions, rope_inv_freq, {.style = config.rope_style});
  k = rope(exec, k, batch.positions, rope_inv_freq, {.style = config.rope_style});
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
