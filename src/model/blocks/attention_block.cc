#include "model/blocks/attention_block.h"

#include "model/key_smoothing.h"
#include "ops/attention/attention.h"
#include "ops/kv_write/kv_write.h"
#include "ops/rms_norm/rms_norm.h"
#include "ops/rms_norm_rope/rms_norm_rope.h"
#include "ops/rope/rope.h"
#include "ops/rope_kv_write/rope_kv_write.h"

namespace pagoda {

namespace {

// Norms whole rows of queries and keys, which no kernel does among the heads' own: OLMo's.
RopeKvWriteResult norm_rows_and_write(const Step& step, const AttentionBlock& block,
                                      const StepBatch& batch, const Tensor& joined) {
  Exec& exec = step.exec;
  const LayerConfig& config = step.config.layers[block.layer];
  const std::int64_t q_dim = std::int64_t{config.num_heads} * config.head_dim;
  const std::int64_t kv_dim = std::int64_t{config.num_kv_heads} * config.head_dim;
  const RopeArgs rotation = {.style = step.config.rope_tables[config.rope_table].style};
  const auto turned = [&](std::int64_t begin, std::int64_t width, int heads, const Tensor& norm) {
    const Tensor normed = rms_norm(exec, joined.slice(1, begin, begin + width), norm,
                                   {.eps = step.config.rms_norm_eps});
    return rope(exec, normed.split_last(heads, config.head_dim), step.angles[config.rope_table],
                rotation);
  };
  Tensor q = turned(0, q_dim, config.num_heads, block.q_norm);
  const Tensor k = turned(q_dim, kv_dim, config.num_kv_heads, block.k_norm);
  const Tensor v = joined.slice(1, q_dim + kv_dim, q_dim + 2 * kv_dim)
                       .split_last(config.num_kv_heads, config.head_dim);
  return {.q = std::move(q), .view = kv_write(exec, step.kv.view(block.layer), k, v, batch)};
}

// Turns queries alone: their keys and values are in the cache already.
RopeKvWriteResult turn_queries(const Step& step, const AttentionBlock& block,
                               const Tensor& queries) {
  const LayerConfig& config = step.config.layers[block.layer];
  const Tensor heads = queries.split_last(config.num_heads, config.head_dim);
  const Tensor& angles = step.angles[config.rope_table];
  const RopeArgs rotation = {.style = step.config.rope_tables[config.rope_table].style};
  Tensor q = block.q_norm.defined()
                 ? rms_norm_rope(step.exec, heads, block.q_norm, angles,
                                 {.norm = {.eps = step.config.rms_norm_eps}, .rope = rotation})
                 : rope(step.exec, heads, angles, rotation);
  return {.q = std::move(q), .view = step.kv.view(block.layer)};
}

// Turns queries and keys, and writes to the cache. `batch` has the layer's block table.
RopeKvWriteResult turn_and_write(const Step& step, const AttentionBlock& block,
                                 const StepBatch& batch, const Tensor& joined) {
  const LayerConfig& config = step.config.layers[block.layer];
  if (config.kv_source >= 0) return turn_queries(step, block, joined);
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
  const LayerConfig& config = step.config.layers[layer];
  const StepBatch& own_batch = step.batch.of_table(step.kv.layout().layers[layer].table);
  const Tensor joined = qkv.apply(step.exec, x);  // [tokens, q_dim + 2 * kv_dim]
  const RopeKvWriteResult written = turn_and_write(step, *this, own_batch, joined);
  step.kv.rebind(layer, written.view);
  const Tensor mixed =  // [tokens, q_dim]
      attention(
          step.exec, written.q, written.view, own_batch,
          {.scale = config.score_scale, .window = config.window, .soft_cap = config.score_cap});
  return output.apply(step.exec, mixed);
}

namespace {

std::string attention_prefix(int layer) {
  return fmt::format("model.layers.{}.self_attn.", layer);
}

// The norms of a layer's queries and keys.
struct NormPair {
  std::vector<float> q;
  std::vector<float> k;
};

Result<NormPair> read_norm_pair(const Checkpoint& checkpoint, const ModelConfig& config,
                                KvFormat key_format, int layer) {
  const LayerConfig& shape = config.layers[layer];
  const std::string prefix = attention_prefix(layer);
  const bool is_row = shape.qk_norm == QkNorm::kRow;
  NormPair norms;
  PAGODA_ASSIGN_OR_RETURN(
      norms.q, read_norm(checkpoint, prefix + "q_norm.weight",
                         shape.head_dim * (is_row ? shape.num_heads : 1), config.norm_offset));
  PAGODA_ASSIGN_OR_RETURN(
      norms.k, read_norm(checkpoint, prefix + "k_norm.weight",
                         shape.head_dim * (is_row ? shape.num_kv_heads : 1), config.norm_offset));
  if (is_quantized(key_format) && !is_row)
    balance_norms(norms.q, norms.k, config.rope_tables[shape.rope_table]);
  return norms;
}

// Reads the queries' norm of a layer that reads another one's keys. Where those are balanced, it takes
// what they were divided by.
Result<std::vector<float>> read_query_norm(const Checkpoint& checkpoint, const ModelConfig& config,
                                           KvFormat key_format, int layer) {
  const LayerConfig& shape = config.layers[layer];
  PAGODA_ASSIGN_OR_RETURN(std::vector<float> q,
                          read_norm(checkpoint, attention_prefix(layer) + "q_norm.weight",
                                    shape.head_dim, config.norm_offset));
  if (!is_quantized(key_format)) return q;
  PAGODA_ASSIGN_OR_RETURN(const NormPair stored,
                          read_norm_pair(checkpoint, config, key_format, shape.kv_source));
  PAGODA_ASSIGN_OR_RETURN(const NormPair plain,
                          read_norm_pair(checkpoint, config, KvFormat::kFloat32, shape.kv_source));
  for (std::size_t i = 0; i < q.size(); ++i) {
    if (stored.k[i] != plain.k[i]) q[i] *= plain.k[i] / stored.k[i];
  }
  return q;
}

Status load_norms(Exec& exec, const Checkpoint& checkpoint, const ModelConfig& config,
                  KvFormat key_format, AttentionBlock& block) {
  const LayerConfig& shape = config.layers[block.layer];
  const auto upload = [&exec](const std::vector<float>& norm) {
    return exec.upload<float>(norm, {static_cast<std::int64_t>(norm.size())});
  };
  if (shape.norms_values) block.v_norm = upload(std::vector<float>(shape.head_dim, 1.0f));
  if (shape.qk_norm == QkNorm::kNone) return ok_status();
  if (shape.kv_source >= 0) {
    PAGODA_ASSIGN_OR_RETURN(const std::vector<float> q,
                            read_query_norm(checkpoint, config, key_format, block.layer));
    block.q_norm = upload(q);
    return ok_status();
  }
  PAGODA_ASSIGN_OR_RETURN(const NormPair norms,
                          read_norm_pair(checkpoint, config, key_format, block.layer));
  block.q_norm = upload(norms.q);
  block.k_norm = upload(norms.k);
  return ok_status();
}

// Balances the projections of a layer without norms. The offset is of the balanced bias of keys.
Status smooth_projections(Exec& exec, const ModelConfig& config, ProjectionTensors& qkv,
                          AttentionBlock& block) {
  const LayerConfig& shape = config.layers[block.layer];
  const RopeTable& table = config.rope_tables[shape.rope_table];
  const bool has_bias = !qkv.biases.empty();
  balance_projections({.weight = qkv.weights[0],
                       .bias = has_bias ? &qkv.biases[0] : nullptr,
                       .num_heads = shape.num_heads},
                      {.weight = qkv.weights[1],
                       .bias = has_bias ? &qkv.biases[1] : nullptr,
                       .num_heads = shape.num_kv_heads},
                      shape.head_dim, table);
  // A soft cap sees more of a score than how it differs from others.
  if (has_bias && shape.score_cap == 0) {
    PAGODA_ASSIGN_OR_RETURN(const std::vector<float> bias, read_vector({&qkv.biases[1], 1}));
    block.key_offset = exec.upload<float>(
        mean_turned_bias(bias, table, shape.head_dim, config.max_position_embeddings),
        {shape.num_kv_heads, shape.head_dim});
  }
  return ok_status();
}

ProjectionSpec joined_projection(const ModelConfig& config, int layer) {
  const LayerConfig& shape = config.layers[layer];
  const std::string prefix = attention_prefix(layer);
  const std::int64_t kv_dim = std::int64_t{shape.num_kv_heads} * shape.head_dim;
  ProjectionSpec spec = {
      .parts = {{prefix + "q_proj", std::int64_t{shape.num_heads} * shape.head_dim}},
      .cols = config.hidden_size,
      .bias = config.attention_bias};
  if (shape.kv_source >= 0) return spec;
  spec.parts.push_back({prefix + "k_proj", kv_dim});
  if (shape.keys_are_values) return spec;
  spec.parts.push_back({prefix + "v_proj", kv_dim});
  spec.joined = prefix + "qkv_proj";
  return spec;
}

}  // namespace

Result<AttentionBlock> load_attention_block(Exec& exec, const Checkpoint& checkpoint,
                                            const ModelConfig& config, KvFormat key_format,
                                            int layer) {
  const LayerConfig& shape = config.layers[layer];
  AttentionBlock block;
  block.layer = layer;
  PAGODA_ASSIGN_OR_RETURN(ProjectionTensors qkv,
                          find_projection(checkpoint, joined_projection(config, layer)));
  if (is_quantized(key_format) && shape.qk_norm == QkNorm::kNone) {
    PAGODA_RETURN_IF_ERROR(smooth_projections(exec, config, qkv, block));
  }
  PAGODA_ASSIGN_OR_RETURN(block.qkv, pack_projection(exec, qkv));
  PAGODA_RETURN_IF_ERROR(load_norms(exec, checkpoint, config, key_format, block));
  PAGODA_ASSIGN_OR_RETURN(
      block.output,
      load_projection(exec, checkpoint,
                      {.parts = {{attention_prefix(layer) + "o_proj", config.hidden_size}},
                       .cols = std::int64_t{shape.num_heads} * shape.head_dim,
                       .bias = config.attention_output_bias}));
  return block;
}

}  // namespace pagoda
