#include "model/blocks/attention_block.h"

#include "model/family.h"
#include "model/key_smoothing.h"
#include "ops/attention/attention.h"
#include "ops/clamp/clamp.h"
#include "ops/gate_heads/gate_heads.h"
#include "ops/kv_write/kv_write.h"
#include "ops/rms_norm/rms_norm.h"
#include "ops/rms_norm_rope/rms_norm_rope.h"
#include "ops/rope/rope.h"
#include "ops/rope_kv_write/rope_kv_write.h"

namespace pagoda {

namespace {

// Norms whole rows of queries and of keys, for OLMo. rope_kv_write can only norm each head.
RopeKvWriteResult norm_rows_and_write(const Step& step, const AttentionBlock& block,
                                      const StepBatch& batch, const Tensor& joined) {
  Exec& exec = step.exec;
  const AttentionConfig& config = step.config.layers[block.layer].attention();
  const std::int64_t q_dim = std::int64_t{config.num_heads} * config.head_dim;
  const std::int64_t kv_dim = std::int64_t{config.num_kv_heads} * config.head_dim;
  const RopeArgs rotation = {.style = step.config.rope_tables[config.rope_table].style};
  const auto clamped = [&](const Tensor& x) {
    return config.qkv_limit > 0 ? clamp(exec, x, {.limit = config.qkv_limit}) : x;
  };
  const auto rotated = [&](std::int64_t begin, std::int64_t width, int heads, const Tensor& norm) {
    const Tensor normed = clamped(rms_norm(exec, joined.slice(1, begin, begin + width), norm,
                                           {.eps = step.config.rms_norm_eps}));
    return rope(exec, normed.split_last(heads, config.head_dim), step.angles[config.rope_table],
                rotation);
  };
  Tensor q = rotated(0, q_dim, config.num_heads, block.q_norm);
  const Tensor k = rotated(q_dim, kv_dim, config.num_kv_heads, block.k_norm);
  const Tensor v = clamped(joined.slice(1, q_dim + kv_dim, q_dim + 2 * kv_dim))
                       .split_last(config.num_kv_heads, config.head_dim);
  return {.q = std::move(q), .view = kv_write(exec, step.kv.view(block.layer), k, v, batch)};
}

// Rotates the queries alone. Another layer has written their keys and values to the cache.
RopeKvWriteResult rotate_queries(const Step& step, const AttentionBlock& block,
                                 const Tensor& queries) {
  const AttentionConfig& config = step.config.layers[block.layer].attention();
  const Tensor heads = queries.split_last(config.num_heads, config.head_dim);
  const Tensor& angles = step.angles[config.rope_table];
  const RopeArgs rotation = {.style = step.config.rope_tables[config.rope_table].style};
  Tensor q = block.q_norm.defined()
                 ? rms_norm_rope(step.exec, heads, block.q_norm, angles,
                                 {.norm = {.eps = step.config.rms_norm_eps}, .rope = rotation})
                 : rope(step.exec, heads, angles, rotation);
  return {.q = std::move(q), .view = step.kv.view(block.layer)};
}

// Rotates queries and keys, and writes to the cache. `batch` has the layer's block table.
RopeKvWriteResult rotate_and_write(const Step& step, const AttentionBlock& block,
                                   const StepBatch& batch, const Tensor& joined) {
  const AttentionConfig& config = step.config.layers[block.layer].attention();
  if (config.kv_source >= 0) return rotate_queries(step, block, joined);
  if (config.qk_norm == QkNorm::kRow) return norm_rows_and_write(step, block, batch, joined);
  return rope_kv_write(
      step.exec, joined, block.q_norm, block.k_norm, step.angles[config.rope_table],
      step.kv.view(block.layer), batch,
      {.num_heads = config.num_heads,
       .norm = {.eps = step.config.rms_norm_eps},
       .rope = {.style = step.config.rope_tables[config.rope_table].style},
       .query_angles = step.query_angles.empty() ? Tensor() : step.query_angles[config.rope_table],
       .key_offset = block.key_offset,
       .v_norm = block.v_norm,
       .keys_are_values = config.keys_are_values});
}

}  // namespace

Tensor AttentionBlock::apply(const Step& step, const Tensor& x) const {
  const AttentionConfig& config = step.config.layers[layer].attention();
  const StepBatch& own_batch = step.batch.of_table(step.kv.layout().layers[layer].table);
  const Tensor joined = qkv.apply(step.exec, x);  // [tokens, q_dim + 2 * kv_dim]
  const RopeKvWriteResult written = rotate_and_write(step, *this, own_batch, joined);
  step.kv.rebind(layer, written.view);
  Tensor mixed =  // [tokens, q_dim]
      attention(step.exec, written.q, written.view, own_batch,
                {.scale = config.score_scale,
                 .window = config.window,
                 .soft_cap = config.score_cap,
                 .sinks = sinks});
  if (gate.weight.defined()) mixed = gate_heads(step.exec, mixed, gate.apply_float32(step.exec, x));
  return output.apply(step.exec, mixed);
}

namespace {

// The norms of a layer's queries and keys.
struct NormPair {
  std::vector<float> q;
  std::vector<float> k;
};

Result<std::vector<float>> read_norm(const BlockSource& source, const BlockSpec& spec,
                                     VectorRole role) {
  const VectorSpec& norm = *spec.vector(role);
  return read_norm(source.checkpoint, norm.name + ".weight", norm.dim, source.config.norm_offset);
}

// Reads the norms of a layer with keys of its own, whose spec is `spec`.
Result<NormPair> read_norm_pair(const BlockSource& source, const BlockSpec& spec,
                                const AttentionConfig& attention, bool are_balanced) {
  NormPair norms;
  PAGODA_ASSIGN_OR_RETURN(norms.q, read_norm(source, spec, VectorRole::kQueryNorm));
  PAGODA_ASSIGN_OR_RETURN(norms.k, read_norm(source, spec, VectorRole::kKeyNorm));
  if (are_balanced && attention.qk_norm != QkNorm::kRow)
    balance_norms(norms.q, norms.k, source.config.rope_tables[attention.rope_table]);
  return norms;
}

// Reads the query norm of a layer that reads another layer's keys. If balancing has divided those
// keys by factors, the query norm is multiplied by the same factors.
Result<std::vector<float>> read_query_norm(const BlockSource& source,
                                           const AttentionConfig& attention) {
  PAGODA_ASSIGN_OR_RETURN(std::vector<float> q,
                          read_norm(source, source.spec, VectorRole::kQueryNorm));
  if (!is_quantized(source.key_format)) return q;
  const AttentionConfig& of_keys = source.config.layers[attention.kv_source].attention();
  const BlockSpec spec = block_spec(source.config, of_keys, attention.kv_source);
  PAGODA_ASSIGN_OR_RETURN(const NormPair stored,
                          read_norm_pair(source, spec, of_keys, /*are_balanced=*/true));
  PAGODA_ASSIGN_OR_RETURN(const NormPair plain,
                          read_norm_pair(source, spec, of_keys, /*are_balanced=*/false));
  for (std::size_t i = 0; i < q.size(); ++i) {
    if (stored.k[i] != plain.k[i]) q[i] *= plain.k[i] / stored.k[i];
  }
  return q;
}

Status load_norms(const BlockSource& source, const AttentionConfig& attention,
                  AttentionBlock& block) {
  const auto upload = [&source](const std::vector<float>& norm) {
    return source.exec.upload<float>(norm, {static_cast<std::int64_t>(norm.size())});
  };
  if (attention.norms_values) block.v_norm = upload(std::vector<float>(attention.head_dim, 1.0f));
  if (attention.qk_norm == QkNorm::kNone) return ok_status();
  if (attention.kv_source >= 0) {
    PAGODA_ASSIGN_OR_RETURN(const std::vector<float> q, read_query_norm(source, attention));
    block.q_norm = upload(q);
    return ok_status();
  }
  PAGODA_ASSIGN_OR_RETURN(const NormPair norms, read_norm_pair(source, source.spec, attention,
                                                               is_quantized(source.key_format)));
  block.q_norm = upload(norms.q);
  block.k_norm = upload(norms.k);
  return ok_status();
}

// Balances the projections of a layer without query and key norms. key_offset is computed from the
// key bias after balancing.
Status smooth_projections(const BlockSource& source, const AttentionConfig& attention,
                          ProjectionTensors& qkv, AttentionBlock& block) {
  const RopeTable& table = source.config.rope_tables[attention.rope_table];
  const bool has_bias = !qkv.biases.empty();
  balance_projections({.weight = qkv.weights[0],
                       .bias = has_bias ? &qkv.biases[0] : nullptr,
                       .num_heads = attention.num_heads},
                      {.weight = qkv.weights[1],
                       .bias = has_bias ? &qkv.biases[1] : nullptr,
                       .num_heads = attention.num_kv_heads},
                      attention.head_dim, table);
  // Subtracting key_offset from all keys shifts all scores of a query alike. Softmax ignores this
  // shift, but a soft cap does not, and sinks are not shifted.
  if (has_bias && attention.score_cap == 0 && !attention.has_sinks) {
    PAGODA_ASSIGN_OR_RETURN(const std::vector<float> bias, read_vector({&qkv.biases[1], 1}));
    block.key_offset = source.exec.upload<float>(
        mean_rotated_bias(bias, table, attention.head_dim, source.config.max_position_embeddings),
        {attention.num_kv_heads, attention.head_dim});
  }
  return ok_status();
}

}  // namespace

BlockSpec block_spec(const ModelConfig& config, const AttentionConfig& attention, int layer) {
  const std::string prefix = layer_prefix(layer) + "self_attn.";
  const std::int64_t q_dim = std::int64_t{attention.num_heads} * attention.head_dim;
  const std::int64_t kv_dim = std::int64_t{attention.num_kv_heads} * attention.head_dim;
  BlockSpec spec;
  ProjectionSpec qkv = {.role = ProjectionRole::kQueriesKeysValues,
                        .parts = {{prefix + "q_proj", q_dim}},
                        .cols = config.hidden_size,
                        .bias = config.attention_bias};
  const bool has_cache = attention.kv_source < 0;
  const auto add_cached = [&](const char* name) {
    if (has_cache)
      qkv.parts.push_back({prefix + name, kv_dim});
    else
      spec.passed_over.push_back(prefix + name);
  };
  add_cached("k_proj");
  if (!attention.keys_are_values) add_cached("v_proj");
  if (has_cache && !attention.keys_are_values) qkv.joined = prefix + "qkv_proj";
  spec.projections.push_back(std::move(qkv));
  if (attention.output_gate != OutputGate::kNone) {
    spec.projections.push_back({.role = ProjectionRole::kOutputGate,
                                .parts = {{prefix + "g_proj", attention.num_output_gates()}},
                                .cols = config.hidden_size});
  }
  spec.projections.push_back({.role = ProjectionRole::kAttentionOutput,
                              .parts = {{prefix + "o_proj", config.hidden_size}},
                              .cols = q_dim,
                              .bias = config.attention_output_bias});
  if (attention.has_sinks) {
    spec.vectors.push_back(
        {.role = VectorRole::kSinks, .name = prefix + "sinks", .dim = attention.num_heads});
  }
  if (attention.qk_norm == QkNorm::kNone) return spec;
  const bool is_row = attention.qk_norm == QkNorm::kRow;
  spec.vectors.push_back({.role = VectorRole::kQueryNorm,
                          .name = prefix + "q_norm",
                          .dim = is_row ? q_dim : attention.head_dim});
  if (has_cache) {
    spec.vectors.push_back({.role = VectorRole::kKeyNorm,
                            .name = prefix + "k_norm",
                            .dim = is_row ? kv_dim : attention.head_dim});
  } else {
    spec.passed_over.push_back(prefix + "k_norm");
  }
  return spec;
}

Result<AttentionBlock> load_block(const BlockSource& source, const AttentionConfig& attention) {
  AttentionBlock block;
  block.layer = source.layer;
  PAGODA_ASSIGN_OR_RETURN(
      ProjectionTensors qkv,
      find_projection(source.checkpoint,
                      source.spec.projection(ProjectionRole::kQueriesKeysValues)));
  if (is_quantized(source.key_format) && attention.qk_norm == QkNorm::kNone) {
    PAGODA_RETURN_IF_ERROR(smooth_projections(source, attention, qkv, block));
  }
  PAGODA_ASSIGN_OR_RETURN(block.qkv, pack_projection(source.exec, qkv));
  PAGODA_RETURN_IF_ERROR(load_norms(source, attention, block));
  if (attention.has_sinks) {
    PAGODA_ASSIGN_OR_RETURN(block.sinks, load_vector(source, VectorRole::kSinks));
  }
  if (attention.output_gate != OutputGate::kNone) {
    PAGODA_ASSIGN_OR_RETURN(block.gate, load_projection(source, ProjectionRole::kOutputGate));
  }
  PAGODA_ASSIGN_OR_RETURN(block.output, load_projection(source, ProjectionRole::kAttentionOutput));
  return block;
}

}  // namespace pagoda
