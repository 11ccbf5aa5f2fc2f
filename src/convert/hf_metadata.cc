#include "convert/hf_metadata.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "model/family.h"
#include "model/rope_frequencies.h"

namespace pagoda {
namespace {

constexpr float kSameDivisor = 1e-6f;  // relative: float32's rounding of two quotients

bool are_same(float a, float b) {
  return std::fabs(a - b) <= kSameDivisor * std::fabs(b);
}

// Returns whether all that the config says has a key here.
bool is_like_llama(const ModelConfig& config) {
  for (const Family* family : {&kLlama, &kMistral, &kQwen2, &kQwen3}) {
    if (config.architecture == family->model_type)
      return config.rope_tables.size() == 1 && config.rope_tables.front().factor == 1 &&
             config.rope_tables.front().long_inv_freq.empty() &&
             config.rope_tables.front().rotary_dim() == config.layers.front().head_dim &&
             config.activation == Activation::kSilu;
  }
  return false;
}

}  // namespace

Status check_is_written(const ModelConfig& config) {
  if (config.has_score_head)
    return unsupported("[quantize] a checkpoint that scores pairs of texts is not written as GGUF");
  if (is_like_llama(config)) return ok_status();
  return unsupported(
      "[quantize] a {} of this kind is not written as GGUF; llama, mistral, qwen2 and qwen3 with "
      "Llama's rotations are",
      config.architecture);
}

HfRope hf_rope(const ModelConfig& config) {
  HfRope rope;
  const RopeTable& table = config.rope_tables.front();
  const std::vector<float> unscaled =
      rope_inverse_frequencies(config.layers.front().head_dim, table.theta, {});
  std::vector<float> divisors(unscaled.size());
  std::transform(unscaled.begin(), unscaled.end(), table.inv_freq.begin(), divisors.begin(),
                 std::divides<>());
  const bool is_linear = std::all_of(divisors.begin(), divisors.end(), [&](float divisor) {
    return are_same(divisor, divisors.front());
  });
  if (!is_linear) {
    rope.divisors = std::move(divisors);
  } else if (!are_same(divisors.front(), 1)) {
    rope.linear_factor = divisors.front();
  }
  return rope;
}

Status set_architecture_keys(const ModelConfig& config, const HfRope& rope,
                             GgufMetadata& metadata) {
  const LayerConfig& layer = config.layers.front();
  if (std::any_of(config.layers.begin(), config.layers.end(),
                  [&](const LayerConfig& other) { return other.window != layer.window; })) {
    return unsupported("[quantize] windows that differ by layer: GGUF has no key for them");
  }
  const std::string arch(find_family(config.architecture)->gguf_architecture);
  const auto u32 = [](int value) { return static_cast<std::uint32_t>(value); };
  metadata.set("general.architecture", arch)
      .set("general.type", "model")
      .set(arch + ".block_count", u32(config.num_layers()))
      .set(arch + ".context_length", u32(config.max_position_embeddings))
      .set(arch + ".embedding_length", u32(config.hidden_size))
      .set(arch + ".feed_forward_length", u32(layer.intermediate_size))
      .set(arch + ".attention.head_count", u32(layer.num_heads))
      .set(arch + ".attention.head_count_kv", u32(layer.num_kv_heads))
      .set(arch + ".attention.key_length", u32(layer.head_dim))
      .set(arch + ".attention.value_length", u32(layer.head_dim))
      .set(arch + ".attention.layer_norm_rms_epsilon", config.rms_norm_eps)
      .set(arch + ".rope.dimension_count", u32(layer.head_dim))
      .set(arch + ".rope.freq_base", static_cast<float>(config.rope_tables.front().theta))
      .set(arch + ".vocab_size", u32(config.vocab_size));
  if (layer.window > 0) metadata.set(arch + ".attention.sliding_window", u32(layer.window));
  if (rope.linear_factor != 1) {
    metadata.set(arch + ".rope.scaling.type", "linear")
        .set(arch + ".rope.scaling.factor", static_cast<float>(rope.linear_factor));
  }
  return ok_status();
}

void set_pooling_key(const ModelConfig& config, const std::optional<EmbeddingFormat>& format,
                     GgufMetadata& metadata) {
  if (!format) return;
  const std::string arch(find_family(config.architecture)->gguf_architecture);
  metadata.set(arch + ".pooling_type", gguf_pooling_type(format->pooling));
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
