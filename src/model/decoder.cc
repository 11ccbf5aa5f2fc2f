#include "model/decoder.h"

#include <string>
#include <variant>
#include <vector>

#include "model/checkpoint_tensors.h"
#include "model/family.h"
#include "model/layer_spec.h"
#include "ops/gather_rows/gather_rows.h"
#include "ops/rms_norm/rms_norm.h"
#include "ops/rope/rope.h"
#include "ops/select_rows/select_rows.h"
#include "ops/soft_cap/soft_cap.h"

namespace pagoda {

Tensor Decoder::Layer::mix(const Step& step, const Tensor& x) const {
  return std::visit([&](const auto& block) { return block.apply(step, x); }, mixer);
}

Tensor Decoder::Layer::apply_mlp(const Step& step, const Tensor& x, const Tensor& residual) const {
  if (const auto* const both = std::get_if<ParallelMlpBlock>(&mlp))
    return both->apply(step, x, residual);
  if (const auto* const experts = std::get_if<ExpertsBlock>(&mlp)) return experts->apply(step, x);
  return std::get<DenseMlpBlock>(mlp).apply(step, x);
}

template <typename Visit>
void Decoder::Layer::for_each_projection(const Visit& visit) const {
  const auto visit_all = [&](const auto& block) { block.for_each_projection(visit); };
  std::visit(visit_all, mixer);
  std::visit(visit_all, mlp);
  if (per_layer) visit_all(*per_layer);
}

AddRmsNormArgs Decoder::sum_args(const Tensor& delta_norm) const {
  return {.eps = config_.rms_norm_eps,
          .delta_norm = delta_norm,
          .delta_factor = config_.residual_factor};
}

// Returns the arguments of the sum at the end of a layer.
AddRmsNormArgs Decoder::last_sum_args(const Layer& layer) const {
  AddRmsNormArgs args =
      sum_args(layer.per_layer ? layer.per_layer_delta_norm : layer.mlp_delta_norm);
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
  // Adds the previous block's output to the residual stream, and norms the sum for the next block.
  const auto enter = [&](const AddRmsNormArgs& args, const Tensor& norm) {
    AddRmsNormResult sum = add_rms_norm(exec, residual, delta, norm, args);
    residual = std::move(sum.sum);
    return std::move(sum.normed);
  };
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    if (i > 0) {
      delta = layer.mix(step, enter(last_sum_args(layers_[i - 1]), layer.attention_norm));
    } else if (layer.attention_norm.defined()) {
      delta = layer.mix(
          step, rms_norm(exec, residual, layer.attention_norm, {.eps = config_.rms_norm_eps}));
    } else {
      delta = layer.mix(step, residual);
    }
    const Tensor normed = enter(sum_args(layer.attention_delta_norm), layer.mlp_norm);
    delta = layer.apply_mlp(step, normed, residual);
    if (layer.per_layer) {
      const Tensor x = enter(sum_args(layer.mlp_delta_norm), Tensor());
      delta = layer.per_layer->apply(step, x, short_embedding, static_cast<int>(i));
    }
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

// Loads a norm of the hidden state; undefined if the layer has none.
Result<Tensor> load_layer_norm(const BlockSource& source, VectorRole role) {
  const VectorSpec* norm = source.spec.vector(role);
  if (norm == nullptr) return Tensor();
  return load_norm(source.exec, source.checkpoint, norm->name + ".weight", norm->dim,
                   source.config.norm_offset);
}

// Reads the factor of a layer's output; 1 if there is none.
Result<float> read_layer_factor(const BlockSource& source) {
  const VectorSpec* vector = source.spec.vector(VectorRole::kLayerFactor);
  if (vector == nullptr) return 1;
  std::string tensor = vector->name;  // GGUF's name has a ".weight" that Hugging Face's name lacks
  if (!source.checkpoint.has(tensor)) tensor += ".weight";
  if (!source.checkpoint.has(tensor)) return 1;
  PAGODA_ASSIGN_OR_RETURN(const std::vector<float> factor,
                          read_norm(source.checkpoint, tensor, vector->dim, 0));
  return factor.front();
}

// Loads the kind of block that the config's variant holds.
template <typename Block, typename Config>
Status load_alternative(const BlockSource& source, const Config& alternatives, Block& block) {
  return std::visit(
      [&](const auto& config) -> Status {
        PAGODA_ASSIGN_OR_RETURN(block, load_block(source, config));
        return ok_status();
      },
      alternatives);
}

}  // namespace

Result<Decoder::Layer> Decoder::load_layer(const BlockSource& source) {
  const LayerConfig& config = source.config.layers[source.layer];
  Layer layer;
  PAGODA_ASSIGN_OR_RETURN(layer.attention_norm,
                          load_layer_norm(source, VectorRole::kAttentionNorm));
  PAGODA_RETURN_IF_ERROR(load_alternative(source, config.mixer, layer.mixer));
  PAGODA_ASSIGN_OR_RETURN(layer.attention_delta_norm,
                          load_layer_norm(source, VectorRole::kAttentionDeltaNorm));
  PAGODA_ASSIGN_OR_RETURN(layer.mlp_norm, load_layer_norm(source, VectorRole::kMlpNorm));
  PAGODA_RETURN_IF_ERROR(load_alternative(source, config.mlp, layer.mlp));
  PAGODA_ASSIGN_OR_RETURN(layer.mlp_delta_norm, load_layer_norm(source, VectorRole::kMlpDeltaNorm));
  if (source.config.per_layer_width > 0) {
    PAGODA_ASSIGN_OR_RETURN(layer.per_layer, load_per_layer_block(source));
    PAGODA_ASSIGN_OR_RETURN(layer.per_layer_delta_norm,
                            load_layer_norm(source, VectorRole::kPerLayerDeltaNorm));
  }
  PAGODA_ASSIGN_OR_RETURN(layer.factor, read_layer_factor(source));
  return layer;
}

Status Decoder::load_ends(Exec& exec, const Checkpoint& checkpoint) {
  const Shape shape = {config_.vocab_size, config_.hidden_size};
  // The head is linear, so the factor of logits is applied to its input, in the norm's weights.
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
    const BlockSpec spec = layer_spec(*family, config, i);
    PAGODA_ASSIGN_OR_RETURN(Layer layer, load_layer({.exec = exec,
                                                     .checkpoint = named,
                                                     .config = config,
                                                     .spec = spec,
                                                     .key_format = layout.layers[i].formats.keys,
                                                     .layer = i}));
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

// Counts the bytes of weights that a step reads, and tells each weight which one is read next.
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
    layer.for_each_projection(add);
    if (const ExpertsBlock* const experts = experts_of(layer.mlp))
      num_expert_bytes_per_token_ += experts->num_chosen_bytes();
  }
  if (config_.has_head) add(head_);
}

// Loads the frequencies of each rope table.
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
