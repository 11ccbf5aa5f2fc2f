#include "model/gguf_config.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "model/config_limits.h"
#include "model/family.h"
#include "model/gguf_keys.h"
#include "model/gguf_tokens.h"
#include "model/rope_frequencies.h"
#include "weights/printable.h"

namespace pagoda {
namespace {

// Reads "<architecture>.<key>" within a range.
class ArchitectureKeys {
 public:
  ArchitectureKeys(const GgufFile& file, std::string architecture)
      : file_(file), prefix_(std::move(architecture) + ".") {}

  std::string name(std::string_view key) const { return prefix_ + std::string(key); }
  bool has(std::string_view key) const { return file_.has(name(key)); }

  Result<int> integer(std::string_view key, IntegerRange range) const {
    PAGODA_ASSIGN_OR_RETURN(const std::int64_t value, file_.integer(name(key)));
    return in_range(key, value, range);
  }
  Result<int> integer_or(std::string_view key, IntegerRange range, int otherwise) const {
    if (!has(key)) return otherwise;
    return integer(key, range);
  }
  Result<double> number(std::string_view key, NumberRange range) const {
    PAGODA_ASSIGN_OR_RETURN(const double value, file_.number(name(key)));
    if (!(value >= range.min && value <= range.max)) {
      return data_loss("[gguf] key {}: expected {} to {}, got {}", name(key), range.min, range.max,
                       value);
    }
    return value;
  }
  Result<double> number_or(std::string_view key, NumberRange range, double otherwise) const {
    if (!has(key)) return otherwise;
    return number(key, range);
  }
  // One integer, or an array that repeats it for each layer.
  Result<int> uniform_integer(std::string_view key, IntegerRange range) const {
    const auto array = file_.integers(name(key));
    if (!array.ok()) return integer(key, range);
    if (array->empty()) return data_loss("[gguf] key {}: expected values, got none", name(key));
    for (const std::int64_t value : *array) {
      if (value != array->front()) {
        return unsupported("[gguf] key {}: layers that differ are not supported", name(key));
      }
    }
    return in_range(key, array->front(), range);
  }

 private:
  Result<int> in_range(std::string_view key, std::int64_t value, IntegerRange range) const {
    if (value < range.min || value > range.max) {
      return data_loss("[gguf] key {}: expected {} to {}, got {}", name(key), range.min, range.max,
                       value);
    }
    return static_cast<int>(value);
  }

  const GgufFile& file_;
  std::string prefix_;
};

Status read_sizes(const Checkpoint& checkpoint, const ArchitectureKeys& keys, ModelConfig& config) {
  PAGODA_ASSIGN_OR_RETURN(config.hidden_size, keys.integer("embedding_length", kHiddenRange));
  PAGODA_ASSIGN_OR_RETURN(config.intermediate_size,
                          keys.uniform_integer("feed_forward_length", kIntermediateRange));
  PAGODA_ASSIGN_OR_RETURN(config.max_position_embeddings,
                          keys.integer("context_length", kPositionRange));
  PAGODA_ASSIGN_OR_RETURN(const double eps,
                          keys.number("attention.layer_norm_rms_epsilon", kEpsilonRange));
  config.rms_norm_eps = static_cast<float>(eps);
  PAGODA_ASSIGN_OR_RETURN(const HostTensor embedding,
                          checkpoint.tensor("model.embed_tokens.weight"));
  const Shape& shape = embedding.shape;
  if (shape.rank() != 2 || shape[1] != config.hidden_size || shape[0] > kVocabRange.max) {
    return data_loss("[gguf] tensor token_embd.weight: expected vocabulary x {}, got {}",
                     config.hidden_size, to_string(shape));
  }
  config.vocab_size = static_cast<int>(shape[0]);
  return ok_status();
}

Result<int> read_head_dim(const ArchitectureKeys& keys, int hidden_size, int num_heads) {
  if (!keys.has("attention.key_length") && hidden_size % num_heads != 0) {
    return data_loss("[gguf] key {}: expected a multiple of {} heads, got {}",
                     keys.name("embedding_length"), num_heads, hidden_size);
  }
  PAGODA_ASSIGN_OR_RETURN(const int head_dim, keys.integer_or("attention.key_length", kHeadDimRange,
                                                              hidden_size / num_heads));
  for (const char* key : {"attention.value_length", "rope.dimension_count"}) {
    PAGODA_ASSIGN_OR_RETURN(const int dim, keys.integer_or(key, kHeadDimRange, head_dim));
    if (dim != head_dim) {
      return unsupported("[gguf] key {}: {} in heads of {} is not supported", keys.name(key), dim,
                         head_dim);
    }
  }
  return head_dim;
}

// All layers are alike.
Status read_layers(const ArchitectureKeys& keys, const Family& family, int window,
                   ModelConfig& config) {
  LayerConfig layer = {.window = window, .has_qk_norm = family.has_qk_norm};
  PAGODA_ASSIGN_OR_RETURN(const int num_layers, keys.integer("block_count", kLayerRange));
  PAGODA_ASSIGN_OR_RETURN(layer.num_heads,
                          keys.uniform_integer("attention.head_count", kHeadRange));
  layer.num_kv_heads = layer.num_heads;
  if (keys.has("attention.head_count_kv")) {
    PAGODA_ASSIGN_OR_RETURN(layer.num_kv_heads,
                            keys.uniform_integer("attention.head_count_kv", kHeadRange));
  }
  PAGODA_ASSIGN_OR_RETURN(layer.head_dim, read_head_dim(keys, config.hidden_size, layer.num_heads));
  layer.score_scale = default_score_scale(layer.head_dim);
  config.layers.assign(num_layers, layer);
  return ok_status();
}

Result<RopeScaling> read_rope_scaling(const GgufFile& file, const ArchitectureKeys& keys) {
  // llama.cpp's reading: a factor without a type is linear; scale_linear is the factor's older
  // name.
  PAGODA_ASSIGN_OR_RETURN(const std::string_view type,
                          file.string_or(keys.name("rope.scaling.type"), "linear"));
  if (type != "none" && type != "linear") {
    return unsupported("[gguf] key {}: {} is not supported; none and linear are",
                       keys.name("rope.scaling.type"), printable(type));
  }
  const char* key = keys.has("rope.scaling.factor") ? "rope.scaling.factor" : "rope.scale_linear";
  // Zero stands for "no scaling".
  PAGODA_ASSIGN_OR_RETURN(const double factor, keys.number_or(key, {0, kRopeFactorRange.max}, 0));
  RopeScaling scaling;
  if (type == "none" || factor == 0) return scaling;
  scaling.type = RopeScalingType::kLinear;
  scaling.factor = static_cast<float>(factor);
  return scaling;
}

// rope_freqs.weight: Llama 3's scaling, worked out by the converter into a divisor for each pair.
Status apply_rope_divisors(const Checkpoint& checkpoint, RopeTable& table) {
  constexpr std::string_view kName = "rope_freqs.weight";
  if (!checkpoint.has(kName)) return ok_status();
  PAGODA_ASSIGN_OR_RETURN(const HostTensor divisors, checkpoint.tensor(kName));
  const auto num_pairs = static_cast<std::int64_t>(table.inv_freq.size());
  if (divisors.format != WeightFormat::kF32 || divisors.shape != Shape{num_pairs}) {
    return data_loss("[gguf] tensor {}: expected {} values of F32, got {} of {}", kName, num_pairs,
                     to_string(divisors.shape), traits_of(divisors.format).name);
  }
  for (std::int64_t i = 0; i < num_pairs; ++i) {
    float divisor = 0;
    std::memcpy(&divisor, divisors.bytes.data() + i * sizeof(divisor), sizeof(divisor));
    if (!(divisor >= kRopeFactorRange.min && divisor <= kRopeFactorRange.max)) {
      return data_loss("[gguf] tensor {}: expected divisors of {} to {}, got {}", kName,
                       kRopeFactorRange.min, kRopeFactorRange.max, divisor);
    }
    table.inv_freq[i] /= divisor;
  }
  return ok_status();
}

Status read_rope(const Checkpoint& checkpoint, const ArchitectureKeys& keys, const Family& family,
                 ModelConfig& config) {
  RopeTable table = {.style = family.gguf_rope_style};
  PAGODA_ASSIGN_OR_RETURN(table.theta, keys.number_or("rope.freq_base", kThetaRange, table.theta));
  PAGODA_ASSIGN_OR_RETURN(const RopeScaling scaling, read_rope_scaling(*checkpoint.gguf(), keys));
  table.inv_freq = rope_inverse_frequencies(config.layers.front().head_dim, table.theta, scaling);
  PAGODA_RETURN_IF_ERROR(apply_rope_divisors(checkpoint, table));
  config.rope_tables = {std::move(table)};
  return ok_status();
}

Status read_token_ids(const GgufFile& file, ModelConfig& config) {
  PAGODA_ASSIGN_OR_RETURN(
      config.bos_token_id,
      read_gguf_token_id(file, "tokenizer.ggml.bos_token_id", config.vocab_size));
  PAGODA_ASSIGN_OR_RETURN(GgufTokens tokens, read_gguf_tokens(file, config.vocab_size));
  config.eos_token_ids = std::move(tokens.end_ids);
  return ok_status();
}

}  // namespace

Result<ModelConfig> read_gguf_config(const Checkpoint& checkpoint) {
  const GgufFile& file = *checkpoint.gguf();
  PAGODA_ASSIGN_OR_RETURN(const std::string_view architecture, file.string("general.architecture"));
  if (find_gguf_family(architecture, /*has_window=*/false) == nullptr) {
    return unsupported("[gguf] architecture {} is not supported; these are: {}",
                       printable(architecture), supported_gguf_architectures());
  }
  const ArchitectureKeys keys(file, std::string(architecture));
  PAGODA_RETURN_IF_ERROR(check_gguf_keys(file, architecture));
  PAGODA_ASSIGN_OR_RETURN(const int window,
                          keys.integer_or("attention.sliding_window", {0, kPositionRange.max}, 0));
  const Family& family = *find_gguf_family(architecture, window != 0);
  PAGODA_ASSIGN_OR_RETURN(const Checkpoint named, checkpoint.renamed(*family.gguf_tensor_names));
  ModelConfig config;
  config.architecture = family.model_type;
  PAGODA_RETURN_IF_ERROR(read_sizes(named, keys, config));
  PAGODA_RETURN_IF_ERROR(read_layers(keys, family, window, config));
  PAGODA_RETURN_IF_ERROR(read_rope(named, keys, family, config));
  config.tie_word_embeddings = !named.has("lm_head.weight");
  config.attention_bias = named.has("model.layers.0.self_attn.q_proj.bias");
  config.attention_output_bias = named.has("model.layers.0.self_attn.o_proj.bias");
  config.mlp_bias = named.has("model.layers.0.mlp.up_proj.bias");
  PAGODA_RETURN_IF_ERROR(read_token_ids(file, config));
  PAGODA_RETURN_IF_ERROR(check_consistency(config));
  return config;
}

}  // namespace pagoda
