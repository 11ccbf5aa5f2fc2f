#include "convert/hf_metadata.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "convert/same_number.h"
#include "core/log.h"
#include "model/family.h"

namespace pagoda {
namespace {

// Returns llama.cpp's number of a gating function.
int gguf_gating(Gating gating) {
  if (gating == Gating::kSoftmax) return 1;
  return gating == Gating::kSigmoid ? 2 : 3;
}

// Sets the keys of one model.
class ArchitectureWriter {
 public:
  ArchitectureWriter(const ModelConfig& config, GgufMetadata& metadata)
      : config_(config),
        family_(*find_family(config.architecture)),
        prefix_(std::string(family_.gguf_architecture) + "."),
        metadata_(metadata) {}

  Status write() {
    if (config_.has_score_head)
      return unsupported(
          "[quantize] a checkpoint that scores pairs of texts is not written as GGUF");
    metadata_.set("general.architecture", family_.gguf_architecture).set("general.type", "model");
    set_sizes();
    PAGODA_RETURN_IF_ERROR(set_experts());
    PAGODA_RETURN_IF_ERROR(set_heads());
    PAGODA_RETURN_IF_ERROR(set_windows());
    PAGODA_RETURN_IF_ERROR(set_scores());
    return set_multipliers();
  }

 private:
  template <typename T>
  void set(std::string_view key, const T& value) {
    metadata_.set(prefix_ + std::string(key), value);
  }
  void set_count(std::string_view key, int value) { set(key, static_cast<std::uint32_t>(value)); }
  Status has_no_key(std::string_view what) const {
    return unsupported("[quantize] {}: GGUF has no key for it in a {}", what, config_.architecture);
  }

  // Sets one number if it is the same for all layers, else a list.
  void set_each(std::string_view key, const std::function<int(const LayerConfig&)>& number_of) {
    std::vector<int> values;
    for (const LayerConfig& layer : config_.layers) values.push_back(number_of(layer));
    const bool are_alike = std::equal(values.begin() + 1, values.end(), values.begin());
    if (are_alike) {
      set_count(key, values.front());
    } else {
      set(key, values);
    }
  }

  void set_sizes() {
    set_count("block_count", config_.num_layers());
    if (family_.reads_gguf("nextn_predict_layers")) set_count("nextn_predict_layers", 0);
    set_count("context_length", config_.max_position_embeddings);
    set_count("embedding_length", config_.hidden_size);
    set_each("feed_forward_length", [](const LayerConfig& layer) { return layer.mlp_width(); });
    set("attention.layer_norm_rms_epsilon", config_.rms_norm_eps);
    set_count("vocab_size", config_.vocab_size);
    if (family_.reads_gguf("embedding_length_per_layer_input"))
      set_count("embedding_length_per_layer_input", config_.per_layer_width);
  }

  // Sets the keys of a mixture, if there is one. Its layers have a router, so that readers know them.
  Status set_experts() {
    const ExpertsConfig* first = nullptr;
    int num_dense = 0;  // layers before the first mixture
    for (const LayerConfig& layer : config_.layers) {
      const ExpertsConfig* const experts = layer.experts();
      if (experts == nullptr && first == nullptr) ++num_dense;
      if (experts == nullptr) continue;
      if (first == nullptr) first = experts;
      if (!(*experts == *first)) return has_no_key("mixtures that differ");
    }
    if (first == nullptr) return ok_status();
    const RouteRule& rule = first->rule;
    set_count("expert_count", first->num_experts);
    set_count("expert_used_count", rule.num_chosen);
    set_count("expert_feed_forward_length", first->intermediate_size);
    const auto set_known = [&](std::string_view key, int value) {
      if (family_.reads_gguf(key)) set_count(key, value);
    };
    if (first->shared_intermediate_size > 0) {
      set_known("expert_shared_feed_forward_length", first->shared_intermediate_size);
      if (!first->has_shared_gate)
        set_known("expert_shared_count",
                  first->shared_intermediate_size / first->intermediate_size);
    }
    if (family_.reads_gguf("expert_weights_norm")) set("expert_weights_norm", rule.is_normalised);
    set_known("expert_gating_func", gguf_gating(rule.gating));
    if (rule.factor != 1) set("expert_weights_scale", rule.factor);
    set_known("leading_dense_block_count", num_dense);
    set_known("interleave_moe_layer_step", 1);
    if (rule.num_groups > 1) {
      set_count("expert_group_count", rule.num_groups);
      set_count("expert_group_used_count", rule.num_chosen_groups);
    }
    return ok_status();
  }

  Status set_heads() {
    const AttentionConfig& full = config_.first_attention(/*has_window=*/false);
    const AttentionConfig& windowed = config_.first_attention(/*has_window=*/true);
    set_each("attention.head_count",
             [](const LayerConfig& layer) { return layer.attention().num_heads; });
    set_each("attention.head_count_kv",
             [](const LayerConfig& layer) { return layer.attention().num_kv_heads; });
    set_count("attention.key_length", full.head_dim);
    set_count("attention.value_length", full.head_dim);
    if (family_.reads_gguf("attention.key_length_swa")) {
      set_count("attention.key_length_swa", windowed.head_dim);
      set_count("attention.value_length_swa", windowed.head_dim);
    }
    int num_shared = 0;
    for (const LayerConfig& each : config_.layers) {
      const AttentionConfig& layer = each.attention();
      const int head_dim = layer.window > 0 ? windowed.head_dim : full.head_dim;
      if (layer.head_dim != head_dim) return has_no_key("layers with other heads");
      num_shared += layer.kv_source >= 0 ? 1 : 0;
    }
    if (family_.reads_gguf("attention.shared_kv_layers"))
      set_count("attention.shared_kv_layers", num_shared);
    return ok_status();
  }

  Status set_windows() {
    const int window = config_.first_attention(/*has_window=*/true).window;
    if (window == 0) return ok_status();
    constexpr std::string_view kPattern = "attention.sliding_window_pattern";
    std::vector<bool> has_window;
    bool is_known = true;
    for (int i = 0; i < config_.num_layers(); ++i) {
      const int own = config_.layers[i].attention().window;
      if (own != 0 && own != window) return has_no_key("windows of several lengths");
      has_window.push_back(own != 0);
      const bool is_expected = family_.window_pattern == 0 || (i + 1) % family_.window_pattern != 0;
      is_known = is_known && is_expected == has_window.back();
    }
    set_count("attention.sliding_window", window);
    if (family_.reads_gguf(kPattern)) {
      if (!is_known || !family_.gguf_lacks_windows) set(kPattern, has_window);
      return ok_status();
    }
    return is_known ? ok_status() : has_no_key("windows of some layers alone");
  }

  Status set_scores() {
    const AttentionConfig& first = config_.layers.front().attention();
    for (const LayerConfig& layer : config_.layers) {
      if (layer.attention().score_cap != first.score_cap)
        return has_no_key("caps of some layers' scores");
      if (layer.attention().qkv_limit != 0) return has_no_key("clip_qkv");
    }
    // Without a key, the scale is multiplied into the weights of queries (convert/gguf_model.cc).
    if (family_.reads_gguf("attention.scale")) set("attention.scale", first.score_scale);
    if (family_.reads_gguf("attn_logit_softcapping")) {
      set("attn_logit_softcapping", first.score_cap);
    } else if (first.score_cap != 0) {
      return has_no_key("a cap of scores");
    }
    return ok_status();
  }

  // Sets a factor. If the key is absent or zero, readers assume `known`.
  Status set_factor(std::string_view key, double value, double known) {
    const bool is_known = value == known || are_same(value, known);
    if (family_.reads_gguf(key) && value != 0) {
      set(key, static_cast<float>(value));
      return ok_status();
    }
    return is_known ? ok_status() : has_no_key(key);
  }

  Status set_multipliers() {
    if (config_.glu != family_.gguf_glu()) return has_no_key("another activation");
    const double root = family_.scales_embedding ? std::sqrt(config_.hidden_size) : 1;
    PAGODA_RETURN_IF_ERROR(set_factor("embedding_scale", config_.embedding_factor, root));
    PAGODA_RETURN_IF_ERROR(set_factor("residual_scale", config_.residual_factor, 1));
    PAGODA_RETURN_IF_ERROR(set_factor("logit_scale", 1.0 / config_.logits_factor, 1));
    return set_factor("final_logit_softcapping", config_.logits_cap, family_.gguf_logits_cap);
  }

  const ModelConfig& config_;
  const Family& family_;
  const std::string prefix_;
  GgufMetadata& metadata_;
};

}  // namespace

Status set_architecture_keys(const ModelConfig& config, GgufMetadata& metadata) {
  return ArchitectureWriter(config, metadata).write();
}

void set_pooling_key(const ModelConfig& config, const std::optional<EmbeddingFormat>& format,
                     GgufMetadata& metadata) {
  if (!format) return;
  const std::string arch(find_family(config.architecture)->gguf_architecture);
  metadata.set(arch + ".pooling_type", gguf_pooling_type(format->pooling));
  std::string lost = format->normalizes ? "" : ", vectors of other lengths than 1";
  if (!format->default_prompt.empty()) lost += ", the default prompt";
  if (format->max_tokens) lost += ", the longest input";
  if (format->dimensions) lost += ", the numbers of a vector";
  if (!lost.empty())
    log_warning("[quantize] GGUF has no key for what sentence-transformers' files say of{}",
                lost.substr(1));
}

void set_sampling_keys(const PartialSampling& defaults, GgufMetadata& metadata) {
  const auto set = [&metadata](const char* key, const auto& value) {
    if (value) metadata.set(std::string("general.sampling.") + key, *value);
  };
  set("temp", defaults.temperature);
  set("top_p", defaults.top_p);
  set("min_p", defaults.min_p);
  set("top_k", defaults.top_k);
  set("penalty_repeat", defaults.repetition_penalty);
}

}  // namespace pagoda
