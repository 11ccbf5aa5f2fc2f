#include "model/hf_config.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "model/config_limits.h"
#include "model/json_fields.h"
#include "model/rope_frequencies.h"
#include "weights/affine_config.h"
#include "weights/printable.h"

namespace pagoda {
namespace {

constexpr std::string_view kConfigFile = "config.json";
constexpr std::string_view kGenerationFile = "generation_config.json";

// What sets the families apart in config.json; all else they share.
struct Family {
  std::string_view model_type;
  bool qkv_bias;            // always there, whatever the keys say
  bool reads_bias_key;      // attention_bias: q, k, v and o
  bool reads_mlp_bias_key;  // mlp_bias
  int default_head_dim;     // 0: hidden_size / num_attention_heads
  enum class Window { kNone, kAllLayers, kByLayer } window;
};

constexpr Family kFamilies[] = {
    {"llama", false, true, true, 0, Family::Window::kNone},
    {"mistral", false, false, false, 0, Family::Window::kAllLayers},
    {"qwen2", true, false, false, 0, Family::Window::kByLayer},
    {"qwen3", false, true, false, 128, Family::Window::kByLayer},
};

constexpr int kDefaultWindow = 4096;         // of mistral, qwen2 and qwen3 in transformers
constexpr int kDefaultMaxWindowLayers = 28;  // of qwen2 and qwen3

Result<const Family*> find_family(const JsonFields& fields) {
  PAGODA_ASSIGN_OR_RETURN(const std::string model_type, fields.text("model_type"));
  std::string known;
  for (const Family& family : kFamilies) {
    if (family.model_type == model_type) return &family;
    known += known.empty() ? "" : ", ";
    known += family.model_type;
  }
  return unsupported("[config] architecture {} is not supported; these are: {}",
                     printable(model_type), known);
}

// Keys that change the arithmetic in a way that nothing here computes.
Status check_supported(const JsonFields& fields) {
  PAGODA_ASSIGN_OR_RETURN(const std::string activation, fields.text_or("hidden_act", "silu"));
  if (activation != "silu") {
    return unsupported("[config] {}: hidden_act {} is not supported; silu is", fields.where(),
                       printable(activation));
  }
  return ok_status();
}

Status read_sizes(const JsonFields& fields, const Family& family, ModelConfig& config) {
  PAGODA_ASSIGN_OR_RETURN(config.vocab_size, fields.integer("vocab_size", kVocabRange));
  PAGODA_ASSIGN_OR_RETURN(config.hidden_size, fields.integer("hidden_size", kHiddenRange));
  PAGODA_ASSIGN_OR_RETURN(config.intermediate_size,
                          fields.integer("intermediate_size", kIntermediateRange));
  PAGODA_ASSIGN_OR_RETURN(config.num_layers, fields.integer("num_hidden_layers", kLayerRange));
  PAGODA_ASSIGN_OR_RETURN(config.num_heads, fields.integer("num_attention_heads", kHeadRange));
  PAGODA_ASSIGN_OR_RETURN(config.num_kv_heads,
                          fields.integer_or("num_key_value_heads", kHeadRange, config.num_heads));
  PAGODA_ASSIGN_OR_RETURN(config.max_position_embeddings,
                          fields.integer("max_position_embeddings", kPositionRange));
  PAGODA_ASSIGN_OR_RETURN(const double eps, fields.number_or("rms_norm_eps", kEpsilonRange, 1e-6));
  config.rms_norm_eps = static_cast<float>(eps);
  if (fields.has("head_dim") || family.default_head_dim != 0) {
    PAGODA_ASSIGN_OR_RETURN(config.head_dim,
                            fields.integer_or("head_dim", kHeadDimRange, family.default_head_dim));
    return ok_status();
  }
  if (config.hidden_size % config.num_heads != 0) {
    return invalid_argument(
        "[config] {}: expected hidden_size to be a multiple of {} heads, got {}", fields.where(),
        config.num_heads, config.hidden_size);
  }
  config.head_dim = config.hidden_size / config.num_heads;
  return ok_status();
}

Status read_flags(const JsonFields& fields, const Family& family, ModelConfig& config) {
  PAGODA_ASSIGN_OR_RETURN(config.tie_word_embeddings,
                          fields.boolean_or("tie_word_embeddings", false));
  config.attention_bias = family.qkv_bias;
  if (family.reads_bias_key) {
    PAGODA_ASSIGN_OR_RETURN(config.attention_bias, fields.boolean_or("attention_bias", false));
    config.attention_output_bias = config.attention_bias;
  }
  if (family.reads_mlp_bias_key) {
    PAGODA_ASSIGN_OR_RETURN(config.mlp_bias, fields.boolean_or("mlp_bias", false));
  }
  return ok_status();
}

// The block under which the scaling stands: transformers 5 calls it rope_parameters and keeps
// rope_theta in it.
Result<JsonFields> rope_block(const JsonFields& fields) {
  if (const nlohmann::json* parameters = fields.find("rope_parameters")) {
    for (const nlohmann::json& value : *parameters) {
      if (!value.is_object()) continue;
      return unsupported("[config] {}: rope_parameters that differ by layer type are not supported",
                         fields.where());
    }
    return fields.object("rope_parameters");
  }
  if (fields.has("rope_scaling")) return fields.object("rope_scaling");
  static const nlohmann::json no_keys = nlohmann::json::object();
  return JsonFields(no_keys, fields.where());
}

Result<RopeScaling> read_rope_scaling(const JsonFields& block) {
  RopeScaling scaling;
  const char* key = block.has("rope_type") ? "rope_type" : "type";
  PAGODA_ASSIGN_OR_RETURN(const std::string type, block.text_or(key, "default"));
  if (type == "default") return scaling;
  if (type != "linear" && type != "llama3") {
    return unsupported("[config] {}: rope type {} is not supported; default, linear and llama3 are",
                       block.where(), printable(type));
  }
  PAGODA_ASSIGN_OR_RETURN(const double factor, block.number("factor", kRopeFactorRange));
  scaling.factor = static_cast<float>(factor);
  scaling.type = RopeScalingType::kLinear;
  if (type == "linear") return scaling;
  scaling.type = RopeScalingType::kLlama3;
  PAGODA_ASSIGN_OR_RETURN(const double low, block.number("low_freq_factor", kRopeFactorRange));
  PAGODA_ASSIGN_OR_RETURN(const double high, block.number("high_freq_factor", kRopeFactorRange));
  PAGODA_ASSIGN_OR_RETURN(const int positions,
                          block.integer("original_max_position_embeddings", kPositionRange));
  scaling.low_freq_factor = static_cast<float>(low);
  scaling.high_freq_factor = static_cast<float>(high);
  scaling.original_positions = static_cast<float>(positions);
  if (scaling.low_freq_factor >= scaling.high_freq_factor) {
    return block.wrong("high_freq_factor", fmt::format("more than low_freq_factor ({})", low));
  }
  return scaling;
}

Status read_rope(const JsonFields& fields, ModelConfig& config) {
  PAGODA_ASSIGN_OR_RETURN(const JsonFields block, rope_block(fields));
  for (const JsonFields* place : {&fields, &block}) {
    PAGODA_ASSIGN_OR_RETURN(const double part,
                            place->number_or("partial_rotary_factor", {0, 1}, 1));
    if (part != 1) {
      return unsupported("[config] {}: partial_rotary_factor {} is not supported", place->where(),
                         part);
    }
  }
  const JsonFields& theta_place = block.has("rope_theta") ? block : fields;
  PAGODA_ASSIGN_OR_RETURN(const double theta,
                          theta_place.number_or("rope_theta", kThetaRange, 10000));
  PAGODA_ASSIGN_OR_RETURN(const RopeScaling scaling, read_rope_scaling(block));
  config.rope_style = RopeStyle::kHalves;
  config.rope_inv_freq = rope_inverse_frequencies(config.head_dim, theta, scaling);
  return ok_status();
}

// layer_types: "full_attention" or "sliding_attention" for each layer.
Status read_layer_types(const JsonFields& fields, int window, ModelConfig& config) {
  const nlohmann::json& types = *fields.find("layer_types");
  if (!types.is_array() || types.size() != static_cast<std::size_t>(config.num_layers)) {
    return fields.wrong("layer_types", fmt::format("a list of {} layers", config.num_layers));
  }
  for (int layer = 0; layer < config.num_layers; ++layer) {
    const nlohmann::json& type = types[layer];
    if (type == "full_attention") continue;
    if (type != "sliding_attention") {
      return unsupported(
          "[config] {}: layer type {} is not supported; full_attention and "
          "sliding_attention are",
          fields.where(), printable(type.dump(), 40));
    }
    if (window == 0) {
      return invalid_argument(
          "[config] {}: layer_types has a sliding_attention, but sliding_window is off",
          fields.where());
    }
    config.layer_windows[layer] = window;
  }
  return ok_status();
}

Status read_windows(const JsonFields& fields, const Family& family, ModelConfig& config) {
  config.layer_windows.assign(config.num_layers, 0);
  if (family.window == Family::Window::kNone) return ok_status();
  // An explicit null is "no window"; an absent key has a default.
  const auto window_of = [&fields](bool is_null) -> Result<int> {
    if (is_null) return 0;
    return fields.integer_or("sliding_window", kPositionRange, kDefaultWindow);
  };
  PAGODA_ASSIGN_OR_RETURN(int window, window_of(fields.is_null("sliding_window")));
  if (family.window == Family::Window::kAllLayers) {
    config.layer_windows.assign(config.num_layers, window);
    return ok_status();
  }
  PAGODA_ASSIGN_OR_RETURN(const bool use_window, fields.boolean_or("use_sliding_window", false));
  if (!use_window) window = 0;
  if (fields.has("layer_types")) return read_layer_types(fields, window, config);
  PAGODA_ASSIGN_OR_RETURN(const int first, fields.integer_or("max_window_layers", {0, 1 << 20},
                                                             kDefaultMaxWindowLayers));
  for (int layer = first; layer < config.num_layers; ++layer) config.layer_windows[layer] = window;
  return ok_status();
}

// Ids that `fields` has replace those in the config.
Status read_token_ids(const JsonFields& fields, ModelConfig& config) {
  const IntegerRange ids{0, config.vocab_size - 1};
  if (fields.has("eos_token_id")) {
    PAGODA_ASSIGN_OR_RETURN(config.eos_token_ids, fields.integers("eos_token_id", ids));
  }
  if (fields.has("bos_token_id")) {
    PAGODA_ASSIGN_OR_RETURN(config.bos_token_id, fields.integer("bos_token_id", ids));
  }
  return ok_status();
}

template <typename T>
Status read_optional(const JsonFields& fields, const char* key, NumberRange range,
                     std::optional<T>& value) {
  if (!fields.has(key)) return ok_status();
  PAGODA_ASSIGN_OR_RETURN(const double number, fields.number(key, range));
  value = static_cast<T>(number);
  return ok_status();
}

}  // namespace

Result<ModelConfig> parse_hf_config(std::string_view config_json,
                                    std::string_view generation_json) {
  PAGODA_ASSIGN_OR_RETURN(const nlohmann::json json, parse_json_object(config_json, kConfigFile));
  const JsonFields fields(json, std::string(kConfigFile));
  PAGODA_ASSIGN_OR_RETURN(const Family* family, find_family(fields));
  PAGODA_RETURN_IF_ERROR(check_supported(fields));
  // The checkpoint reads its tensors by it; here only other libraries' formats are refused.
  PAGODA_RETURN_IF_ERROR(parse_affine_config(config_json).status());
  ModelConfig config;
  config.architecture = family->model_type;
  PAGODA_RETURN_IF_ERROR(read_sizes(fields, *family, config));
  PAGODA_RETURN_IF_ERROR(read_flags(fields, *family, config));
  PAGODA_RETURN_IF_ERROR(read_rope(fields, config));
  PAGODA_RETURN_IF_ERROR(read_windows(fields, *family, config));
  PAGODA_RETURN_IF_ERROR(read_token_ids(fields, config));
  if (!generation_json.empty()) {
    PAGODA_ASSIGN_OR_RETURN(const nlohmann::json generation,
                            parse_json_object(generation_json, kGenerationFile));
    PAGODA_RETURN_IF_ERROR(
        read_token_ids(JsonFields(generation, std::string(kGenerationFile)), config));
  }
  PAGODA_RETURN_IF_ERROR(check_consistency(config));
  return config;
}

Result<GenerationDefaults> parse_hf_generation_defaults(std::string_view generation_json) {
  GenerationDefaults defaults;
  if (generation_json.empty()) return defaults;
  PAGODA_ASSIGN_OR_RETURN(const nlohmann::json json,
                          parse_json_object(generation_json, kGenerationFile));
  const JsonFields fields(json, std::string(kGenerationFile));
  PAGODA_RETURN_IF_ERROR(
      read_optional(fields, "temperature", kTemperatureRange, defaults.temperature));
  PAGODA_RETURN_IF_ERROR(read_optional(fields, "top_p", kProbabilityRange, defaults.top_p));
  PAGODA_RETURN_IF_ERROR(read_optional(fields, "min_p", kProbabilityRange, defaults.min_p));
  PAGODA_RETURN_IF_ERROR(
      read_optional(fields, "repetition_penalty", kPenaltyRange, defaults.repetition_penalty));
  if (fields.has("top_k")) {
    PAGODA_ASSIGN_OR_RETURN(defaults.top_k, fields.integer("top_k", kTopKRange));
  }
  return defaults;
}

}  // namespace pagoda
