#include "model/decoder.h"

#include "model/checkpoint_tensors.h"
#include "ops/gather_rows/gather_rows.h"
#include "ops/rms_norm/rms_norm.h"
#include "ops/rope/rope.h"
#include "ops/select_rows/select_rows.h"
#include "ops/soft_cap/soft_cap.h"

namespace pagoda {

AddRmsNormArgs Decoder::sum_args(const Tensor& delta_norm) const {
  return {.eps = config_.rms_norm_eps,
          .delta_norm = delta_norm,
          .delta_factor = config_.residual_factor};
}

// Returns those of the sum that a layer ends with.
AddRmsNormArgs Decoder::last_sum_args(const Layer& layer) const {
  AddRmsNormArgs args =
      sum_args(per_layer_embedding_.defined() ? layer.per_layer_delta_norm : layer.mlp_delta_norm);
  args.sum_factor = layer.factor;
  return args;
}

std::vector<Tensor> Decoder::angles(Exec& exec, const StepBatch& batch,
                                    const QueryGrowth& growth) const {
  std::vector<Tensor> angles;
  for (std::size_t i = 0; i < rope_inv_freqs_.size(); ++i) {
    angles.push_back(rope_angles(exec, batch.positions, rope_inv_freqs_[i],
                                 {.factor = config_.rope_tables[i].factor,
                                  .growth = growth.factor,
                                  .growth_positions = growth.positions}));
  }
  return angles;
}

HiddenState Decoder::forward(Exec& exec, const StepBatch& batch, KvStore& kv) const {
  const std::vector<Tensor> of_keys = angles(exec, batch, {});
  std::vector<Tensor> of_queries;
  if (config_.query_growth.factor != 0) of_queries = angles(exec, batch, config_.query_growth);
  const Step step = {.exec = exec,
                     .config = config_,
                     .batch = batch,
                     .kv = kv,
                     .angles = of_keys,
                     .query_angles = of_queries};
  Tensor residual = gather_rows(exec, embedding_, batch.token_ids,
                                {.factor = config_.embedding_factor});  // [tokens, hidden]
  Tensor delta;                                                         // [tokens, hidden]
  Tensor short_embedding;
  if (per_layer_embedding_.defined()) short_embedding = per_layer_embedding_.apply(step, residual);
  // Adds what the block before has made, and norms the sum for the next one.
  const auto enter = [&](const AddRmsNormArgs& args, const Tensor& norm) {
    AddRmsNormResult sum = add_rms_norm(exec, residual, delta, norm, args);
    residual = std::move(sum.sum);
    return std::move(sum.normed);
  };
  const Layer* before = nullptr;
  for (const Layer& layer : layers_) {
    if (before != nullptr) {
      delta = layer.attention.apply(step, enter(last_sum_args(*before), layer.attention_norm));
    } else if (layer.attention_norm.defined()) {
      delta = layer.attention.apply(
          step, rms_norm(exec, residual, layer.attention_norm, {.eps = config_.rms_norm_eps}));
    } else {
      delta = layer.attention.apply(step, residual);
    }
    delta = layer.mlp.apply(step, enter(sum_args(layer.attention_delta_norm), layer.mlp_norm));
    if (short_embedding.defined()) {
      const Tensor x = enter(sum_args(layer.mlp_delta_norm), Tensor());
      delta = layer.per_layer.apply(step, x, short_embedding, layer.attention.layer);
    }
    before = &layer;
  }
  return {std::move(residual), std::move(delta)};
}

Tensor Decoder::last_hidden(Exec& exec, const HiddenState& state, const Tensor& rows) const {
  const Tensor residual = select_rows(exec, state.residual, rows);  // [n, hidden]
  const Tensor delta = select_rows(exec, state.delta, rows);        // [n, hidden]
  return add_rms_norm(exec, residual, delta, final_norm_, last_sum_args(layers_.back())).normed;
}

Tensor Decoder::logits(Exec& exec, const HiddenState& state, const Tensor& rows) const {
  Tensor logits = head_.apply_float32(exec, last_hidden(exec, state, rows));
  return config_.logits_cap == 0 ? logits : soft_cap(exec, logits, {.cap = config_.logits_cap});
}

namespace {

// Reads the factor of all that leaves a layer: 1 where there is none.
Result<float> read_layer_factor(const Checkpoint& checkpoint, std::string_view name, int layer) {
  // Hugging Face's name is of a tensor, GGUF's of a module.
  std::string tensor = fmt::format("model.layers.{}.{}", layer, name);
  if (!checkpoint.has(tensor)) tensor += ".weight";
  if (name.empty() || !checkpoint.has(tensor)) return 1;
  PAGODA_ASSIGN_OR_RETURN(const std::vector<float> factor, read_norm(checkpoint, tensor, 1, 0));
  return factor.front();
}

}  // namespace

Result<Decoder::Layer> Decoder::load_layer(Exec& exec, const Checkpoint& checkpoint,
                                           const ModelConfig& config, const Family& family,
                                           KvFormat key_format, int layer) {
  const LayerNormNames& norms = family.norms;
  const auto load = [&](std::string_view name) -> Result<Tensor> {
    if (name.empty()) return Tensor();
    return load_norm(exec, checkpoint, fmt::format("model.layers.{}.{}.weight", layer, name),
                     config.hidden_size, config.norm_offset);
  };
  Layer loaded;
  PAGODA_ASSIGN_OR_RETURN(loaded.attention_norm, load(norms.before_attention));
  PAGODA_ASSIGN_OR_RETURN(loaded.attention,
                          load_attention_block(exec, checkpoint, config, key_format, layer));
  PAGODA_ASSIGN_OR_RETURN(loaded.attention_delta_norm, load(norms.behind_attention));
  PAGODA_ASSIGN_OR_RETURN(loaded.mlp_norm, load(norms.before_mlp));
  PAGODA_ASSIGN_OR_RETURN(loaded.mlp, load_mlp_block(exec, checkpoint, config, layer));
  PAGODA_ASSIGN_OR_RETURN(loaded.mlp_delta_norm, load(norms.behind_mlp));
  if (config.per_layer_width > 0) {
    PAGODA_ASSIGN_OR_RETURN(loaded.per_layer,
                            load_per_layer_block(exec, checkpoint, config, layer));
    PAGODA_ASSIGN_OR_RETURN(loaded.per_layer_delta_norm, load(norms.behind_per_layer));
  }
  PAGODA_ASSIGN_OR_RETURN(loaded.factor, read_layer_factor(checkpoint, family.layer_factor, layer));
  return loaded;
}

Status Decoder::load_ends(Exec& exec, const Checkpoint& checkpoint) {
  const Shape shape = {config_.vocab_size, config_.hidden_size};
  // The head is linear, so that what multiplies logits may as well multiply what it reads.
  PAGODA_ASSIGN_OR_RETURN(final_norm_,
                          load_norm(exec, checkpoint, "model.norm.weight", config_.hidden_size,
                                    config_.norm_offset, config_.logits_factor));
  if (config_.has_head && !config_.tie_word_embeddings) {
    PAGODA_ASSIGN_OR_RETURN(HostTensor head, checked_tensor(checkpoint, "lm_head.weight", shape));
    PAGODA_ASSIGN_OR_RETURN(head_.weight, prepare_weight(exec, {&head, 1}));
  }
  PAGODA_ASSIGN_OR_RETURN(HostTensor embedding,
                          checked_tensor(checkpoint, "model.embed_tokens.weight", shape));
  PAGODA_ASSIGN_OR_RETURN(embedding_, prepare_weight(exec, {&embedding, 1}));
  if (config_.tie_word_embeddings) head_.weight = embedding_;
  return ok_status();
}

Result<Decoder> Decoder::load(Exec& exec, const Checkpoint& checkpoint, const ModelConfig& config,
                              const KvLayout& layout, const Progress& progress) {
  const Family* family = find_family(config.architecture);
  if (family == nullptr)
    return unsupported("[model] architecture {}: nothing here computes it", config.architecture);
  PAGODA_ASSIGN_OR_RETURN(const Checkpoint named, checkpoint.renamed(*family->gguf_tensor_names));
  PAGODA_RETURN_IF_ERROR(check_all_tensors_are_read(named, config));
  Decoder decoder;
  decoder.config_ = config;
  for (int i = 0; i < config.num_layers(); ++i) {
    PAGODA_ASSIGN_OR_RETURN(
        Layer layer, load_layer(exec, named, config, *family, layout.layers[i].formats.keys, i));
    decoder.layers_.push_back(std::move(layer));
    if (progress) progress(static_cast<double>(i + 1) / (config.num_layers() + 1));
  }
  PAGODA_RETURN_IF_ERROR(decoder.load_ends(exec, named));
  PAGODA_ASSIGN_OR_RETURN(decoder.per_layer_embedding_,
                          load_per_layer_embedding(exec, named, config));
  PAGODA_RETURN_IF_ERROR(decoder.load_rope_tables(exec));
  decoder.link_weights(exec);
  if (progress) progress(1.0);
  return decoder;
}

// Counts the weights of a step, and tells each which one the step reads after it.
void Decoder::link_weights(const Exec& exec) {
  PackedWeight* before = nullptr;
  const auto add = [&](const Projection& projection) {
    PackedWeight& weight = *projection.weight.packed;
    num_weight_bytes_ += weight.num_bytes();
    if (before != nullptr) before->set_next(weight, exec);
    before = &weight;
  };
  if (per_layer_embedding_.defined()) add(per_layer_embedding_.projection);
  for (const Layer& layer : layers_) {
    add(layer.attention.qkv);
    add(layer.attention.output);
    add(layer.mlp.gate_up);
    add(layer.mlp.down);
    if (!per_layer_embedding_.defined()) continue;
    add(layer.per_layer.gate);
    add(layer.per_layer.output);
  }
  if (config_.has_head) add(head_);
}

// The engine's own thread uploads nothing at load: these vectors are made where the weights are.
Status Decoder::load_rope_tables(Exec& exec) {
  for (const RopeTable& table : config_.rope_tables) {
    const HostTensor inv_freq = {.name = "inv_freq",
                                 .format = WeightFormat::kF32,
                                 .shape = {static_cast<std::int64_t>(table.inv_freq.size())},
                                 .bytes = std::as_bytes(std::span(table.inv_freq))};
    PAGODA_ASSIGN_OR_RETURN(Tensor loaded, prepare_vector(exec, {&inv_freq, 1}));
    rope_inv_freqs_.push_back(std::move(loaded));
  }
  return ok_status();
}

}  // namespace pagoda
