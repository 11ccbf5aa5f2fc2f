#include "model/gguf_config.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "model/config_limits.h"
#include "model/rope_frequencies.h"
#include "weights/printable.h"

namespace pagoda {
namespace {

constexpr std::string_view kArchitectures[] = {"llama", "qwen2", "qwen3"};

// Tokens that end a turn or a text, by their spelling: files often name only one of theirs. The
// list is what llama.cpp stops at, less the ones of its fill-in-the-middle prompts.
constexpr std::string_view kEndTokens[] = {
    "<|eot_id|>",      "<|im_end|>",         "<|end|>",    "<|return|>", "<|call|>",
    "<end_of_turn>",   "<|endoftext|>",      "<|eom_id|>", "<EOT>",      "_<EOT>",
    "<|end_of_text|>", "<end_of_utterance>", "</s>",
};

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

// Keys that change the arithmetic in a way that nothing here computes, unless they have this value.
struct NeutralKey {
  std::string_view key;
  double neutral;
};
constexpr NeutralKey kNeutralKeys[] = {
    {"expert_count", 0},
    {"attention.clamp_kqv", 0},
    {"attention.max_alibi_bias", 0},
    {"attention.scale", 0},
    {"logit_scale", 1},
    {"residual_scale", 1},
    {"embedding_scale", 1},
    {"attn_logit_softcapping", 0},
    {"final_logit_softcapping", 0},
};

Status check_supported(const GgufFile& file, const ArchitectureKeys& keys) {
  for (const NeutralKey& neutral : kNeutralKeys) {
    PAGODA_ASSIGN_OR_RETURN(const double value,
                            file.number_or(keys.name(neutral.key), neutral.neutral));
    if (value != neutral.neutral) {
      return unsupported("[gguf] key {}: {} is not supported", keys.name(neutral.key), value);
    }
  }
  if (keys.has("attention.sliding_window_pattern")) {
    return unsupported("[gguf] key {} is not supported",
                       keys.name("attention.sliding_window_pattern"));
  }
  return ok_status();
}

Status read_sizes(const Checkpoint& checkpoint, const ArchitectureKeys& keys, ModelConfig& config) {
  PAGODA_ASSIGN_OR_RETURN(config.hidden_size, keys.integer("embedding_length", kHiddenRange));
  PAGODA_ASSIGN_OR_RETURN(config.intermediate_size,
                          keys.uniform_integer("feed_forward_length", kIntermediateRange));
  PAGODA_ASSIGN_OR_RETURN(config.num_layers, keys.integer("block_count", kLayerRange));
  PAGODA_ASSIGN_OR_RETURN(config.num_heads,
                          keys.uniform_integer("attention.head_count", kHeadRange));
  config.num_kv_heads = config.num_heads;
  if (keys.has("attention.head_count_kv")) {
    PAGODA_ASSIGN_OR_RETURN(config.num_kv_heads,
                            keys.uniform_integer("attention.head_count_kv", kHeadRange));
  }
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

Status read_head_dim(const ArchitectureKeys& keys, ModelConfig& config) {
  if (!keys.has("attention.key_length") && config.hidden_size % config.num_heads != 0) {
    return data_loss("[gguf] key {}: expected a multiple of {} heads, got {}",
                     keys.name("embedding_length"), config.num_heads, config.hidden_size);
  }
  PAGODA_ASSIGN_OR_RETURN(config.head_dim, keys.integer_or("attention.key_length", kHeadDimRange,
                                                           config.hidden_size / config.num_heads));
  for (const char* key : {"attention.value_length", "rope.dimension_count"}) {
    PAGODA_ASSIGN_OR_RETURN(const int dim, keys.integer_or(key, kHeadDimRange, config.head_dim));
    if (dim != config.head_dim) {
      return unsupported("[gguf] key {}: {} in heads of {} is not supported", keys.name(key), dim,
                         config.head_dim);
    }
  }
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
Status apply_rope_divisors(const Checkpoint& checkpoint, ModelConfig& config) {
  constexpr std::string_view kName = "rope_freqs.weight";
  if (!checkpoint.has(kName)) return ok_status();
  PAGODA_ASSIGN_OR_RETURN(const HostTensor divisors, checkpoint.tensor(kName));
  const int num_pairs = config.head_dim / 2;
  if (divisors.format != WeightFormat::kF32 || divisors.shape != Shape{num_pairs}) {
    return data_loss("[gguf] tensor {}: expected {} values of F32, got {} of {}", kName, num_pairs,
                     to_string(divisors.shape), traits_of(divisors.format).name);
  }
  for (int i = 0; i < num_pairs; ++i) {
    float divisor = 0;
    std::memcpy(&divisor, divisors.bytes.data() + i * sizeof(divisor), sizeof(divisor));
    if (!(divisor >= kRopeFactorRange.min && divisor <= kRopeFactorRange.max)) {
      return data_loss("[gguf] tensor {}: expected divisors of {} to {}, got {}", kName,
                       kRopeFactorRange.min, kRopeFactorRange.max, divisor);
    }
    config.rope_inv_freq[i] /= divisor;
  }
  return ok_status();
}

Status read_rope(const Checkpoint& checkpoint, const ArchitectureKeys& keys, ModelConfig& config) {
  // The converter permutes q and k of the llama architecture (Mistral's models too), and of no
  // other.
  config.rope_style = config.architecture == "llama" ? RopeStyle::kAdjacent : RopeStyle::kHalves;
  PAGODA_ASSIGN_OR_RETURN(const double theta, keys.number_or("rope.freq_base", kThetaRange, 10000));
  PAGODA_ASSIGN_OR_RETURN(const RopeScaling scaling, read_rope_scaling(*checkpoint.gguf(), keys));
  config.rope_inv_freq = rope_inverse_frequencies(config.head_dim, theta, scaling);
  return apply_rope_divisors(checkpoint, config);
}

Status read_windows(const ArchitectureKeys& keys, ModelConfig& config) {
  PAGODA_ASSIGN_OR_RETURN(const int window,
                          keys.integer_or("attention.sliding_window", {0, kPositionRange.max}, 0));
  config.layer_windows.assign(config.num_layers, window);
  // GGUF calls Mistral's models llama; a window is what tells them apart.
  if (window != 0 && config.architecture == "llama") config.architecture = "mistral";
  return ok_status();
}

void add_end_token(int id, ModelConfig& config) {
  auto& ids = config.eos_token_ids;
  if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
}

Result<std::optional<int>> read_token_id(const GgufFile& file, std::string_view key,
                                         int vocab_size) {
  PAGODA_ASSIGN_OR_RETURN(const std::int64_t id, file.integer_or(key, -1));
  if (id == -1 && !file.has(key)) return std::optional<int>();
  if (id < 0 || id >= vocab_size) {
    return data_loss("[gguf] key {}: expected a token id of 0 to {}, got {}", key, vocab_size - 1,
                     id);
  }
  return std::optional<int>(static_cast<int>(id));
}

Status add_end_tokens_by_spelling(const GgufFile& file, ModelConfig& config) {
  constexpr std::int64_t kControl = 3;
  constexpr std::int64_t kUserDefined = 4;
  if (!file.has("tokenizer.ggml.tokens") || !file.has("tokenizer.ggml.token_type")) {
    return ok_status();
  }
  PAGODA_ASSIGN_OR_RETURN(const auto tokens, file.strings("tokenizer.ggml.tokens"));
  PAGODA_ASSIGN_OR_RETURN(const auto types, file.integers("tokenizer.ggml.token_type"));
  if (tokens.size() > static_cast<std::size_t>(config.vocab_size)) {
    return data_loss("[gguf] key tokenizer.ggml.tokens: expected at most {} tokens, got {}",
                     config.vocab_size, tokens.size());
  }
  if (types.size() != tokens.size()) {
    return data_loss("[gguf] key tokenizer.ggml.token_type: expected {} types, got {}",
                     tokens.size(), types.size());
  }
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    if (types[id] != kControl && types[id] != kUserDefined) continue;
    const auto* end = std::end(kEndTokens);
    if (std::find(std::begin(kEndTokens), end, tokens[id]) != end) {
      add_end_token(static_cast<int>(id), config);
    }
  }
  return ok_status();
}

Status read_token_ids(const GgufFile& file, ModelConfig& config) {
  PAGODA_ASSIGN_OR_RETURN(config.bos_token_id,
                          read_token_id(file, "tokenizer.ggml.bos_token_id", config.vocab_size));
  for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                          "tokenizer.ggml.eom_token_id"}) {
    PAGODA_ASSIGN_OR_RETURN(const auto id, read_token_id(file, key, config.vocab_size));
    if (id) add_end_token(*id, config);
  }
  return add_end_tokens_by_spelling(file, config);
}

Status read_sampling_key(const GgufFile& file, std::string_view key, NumberRange range,
                         std::optional<float>& value) {
  if (!file.has(key)) return ok_status();
  PAGODA_ASSIGN_OR_RETURN(const double number, file.number(key));
  if (!(number >= range.min && number <= range.max)) {
    return data_loss("[gguf] key {}: expected {} to {}, got {}", key, range.min, range.max, number);
  }
  value = static_cast<float>(number);
  return ok_status();
}

}  // namespace

Result<ModelConfig> read_gguf_config(const Checkpoint& checkpoint) {
  const GgufFile& file = *checkpoint.gguf();
  PAGODA_ASSIGN_OR_RETURN(const std::string_view architecture, file.string("general.architecture"));
  const auto* end = std::end(kArchitectures);
  if (std::find(std::begin(kArchitectures), end, architecture) == end) {
    return unsupported("[gguf] architecture {} is not supported; these are: {}",
                       printable(architecture), fmt::join(kArchitectures, ", "));
  }
  ModelConfig config;
  config.architecture = architecture;
  const ArchitectureKeys keys(file, config.architecture);
  PAGODA_RETURN_IF_ERROR(check_supported(file, keys));
  PAGODA_RETURN_IF_ERROR(read_sizes(checkpoint, keys, config));
  PAGODA_RETURN_IF_ERROR(read_head_dim(keys, config));
  PAGODA_RETURN_IF_ERROR(read_rope(checkpoint, keys, config));
  PAGODA_RETURN_IF_ERROR(read_windows(keys, config));
  config.tie_word_embeddings = !checkpoint.has("lm_head.weight");
  config.attention_bias = checkpoint.has("model.layers.0.self_attn.q_proj.bias");
  config.attention_output_bias = checkpoint.has("model.layers.0.self_attn.o_proj.bias");
  config.mlp_bias = checkpoint.has("model.layers.0.mlp.up_proj.bias");
  PAGODA_RETURN_IF_ERROR(read_token_ids(file, config));
  PAGODA_RETURN_IF_ERROR(check_consistency(config));
  return config;
}

Result<GenerationDefaults> read_gguf_generation_defaults(const GgufFile& file) {
  GenerationDefaults defaults;
  PAGODA_RETURN_IF_ERROR(
      read_sampling_key(file, "general.sampling.temp", kTemperatureRange, defaults.temperature));
  PAGODA_RETURN_IF_ERROR(
      read_sampling_key(file, "general.sampling.top_p", kProbabilityRange, defaults.top_p));
  PAGODA_RETURN_IF_ERROR(
      read_sampling_key(file, "general.sampling.min_p", kProbabilityRange, defaults.min_p));
  PAGODA_RETURN_IF_ERROR(read_sampling_key(file, "general.sampling.penalty_repeat", kPenaltyRange,
                                           defaults.repetition_penalty));
  if (file.has("general.sampling.top_k")) {
    PAGODA_ASSIGN_OR_RETURN(const std::int64_t top_k, file.integer("general.sampling.top_k"));
    if (top_k < kTopKRange.min || top_k > kTopKRange.max) {
      return data_loss("[gguf] key general.sampling.top_k: expected {} to {}, got {}",
                       kTopKRange.min, kTopKRange.max, top_k);
    }
    defaults.top_k = static_cast<int>(top_k);
  }
  return defaults;
}

}  // namespace pagoda
