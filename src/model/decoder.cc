#include "model/decoder.h"

#include "model/checkpoint_tensors.h"
#include "model/family.h"
#include "ops/add_rms_norm/add_rms_norm.h"
#include "ops/gather_rows/gather_rows.h"
#include "ops/rms_norm/rms_norm.h"
#include "ops/rope/rope.h"
#include "ops/select_rows/select_rows.h"

namespace pagoda {

HiddenState Decoder::forward(Exec& exec, const StepBatch& batch, KvStore& kv) const {
  const AddRmsNormArgs norm = {.eps = config_.rms_norm_eps};
  Tensor residual = gather_rows(exec, embedding_, batch.token_ids, {});  // [tokens, hidden]
  std::vector<Tensor> angles;
  for (const Tensor& inv_freq : rope_inv_freqs_)
    angles.push_back(rope_angles(exec, batch.positions, inv_freq, {}));
  const Step step = {.exec = exec, .config = config_, .batch = batch, .kv = kv, .angles = angles};
  Tensor delta;  // [tokens, hidden]
  for (const Layer& layer : layers_) {
    Tensor normed;
    if (delta.defined()) {
      AddRmsNormResult entered = add_rms_norm(exec, residual, delta, layer.attention_norm, norm);
      residual = std::move(entered.sum);
      normed = std::move(entered.normed);
    } else {
      normed = rms_norm(exec, residual, layer.attention_norm, {.eps = config_.rms_norm_eps});
    }
    delta = layer.attention.apply(step, normed);
    AddRmsNormResult attended = add_rms_norm(exec, residual, delta, layer.mlp_norm, norm);
    residual = std::move(attended.sum);
    delta = layer.mlp.apply(step, attended.normed);
  }
  return {std::move(residual), std::move(delta)};
}

Tensor Decoder::logits(Exec& exec, const HiddenState& state, const Tensor& rows) const {
  const Tensor residual = select_rows(exec, state.residual, rows);  // [n, hidden]
  const Tensor delta = select_rows(exec, state.delta, rows);        // [n, hidden]
  const Tensor normed =
      add_rms_norm(exec, residual, delta, final_norm_, {.eps = config_.rms_norm_eps}).normed;
  return head_.apply_float32(exec, normed);
}

Result<Decoder::Layer> Decoder::load_layer(Exec& exec, const Checkpoint& checkpoint,
                                           const ModelConfig& config, KvFormat key_format,
                                           int layer) {
  const std::string prefix = fmt::format("model.layers.{}.", layer);
  Layer loaded;
  PAGODA_ASSIGN_OR_RETURN(
      loaded.attention_norm,
      load_norm(exec, checkpoint, prefix + "input_layernorm.weight", config.hidden_size));
  PAGODA_ASSIGN_OR_RETURN(loaded.attention,
                          load_attention_block(exec, checkpoint, config, key_format, layer));
  PAGODA_ASSIGN_OR_RETURN(
      loaded.mlp_norm,
      load_norm(exec, checkpoint, prefix + "post_attention_layernorm.weight", config.hidden_size));
  PAGODA_ASSIGN_OR_RETURN(loaded.mlp, load_mlp_block(exec, checkpoint, config, layer));
  return loaded;
}

Status Decoder::load_ends(Exec& exec, const Checkpoint& checkpoint) {
  const Shape shape = {config_.vocab_size, config_.hidden_size};
  PAGODA_ASSIGN_OR_RETURN(final_norm_,
                          load_norm(exec, checkpoint, "model.norm.weight", config_.hidden_size));
  if (!config_.tie_word_embeddings) {
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
    PAGODA_ASSIGN_OR_RETURN(Layer layer,
                            load_layer(exec, named, config, layout.layers[i].formats.keys, i));
    decoder.layers_.push_back(std::move(layer));
    if (progress) progress(static_cast<double>(i + 1) / (config.num_layers() + 1));
  }
  PAGODA_RETURN_IF_ERROR(decoder.load_ends(exec, named));
  PAGODA_RETURN_IF_ERROR(decoder.load_rope_tables(exec));
  decoder.link_weights(exec);
  if (progress) progress(1.0);
  return decoder;
}

void Decoder::set_key_offsets(Exec& exec, int max_model_len) {
  for (Layer& layer : layers_) layer.attention.set_key_offset(exec, config_, max_model_len);
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
  for (const Layer& layer : layers_) {
    add(layer.attention.qkv);
    add(layer.attention.output);
    add(layer.mlp.gate_up);
    add(layer.mlp.down);
  }
  add(head_);
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
