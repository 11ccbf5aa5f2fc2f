#include "model/hf_config.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "model/config_limits.h"
#include "model/family.h"
#include "model/hf_keys.h"
#include "model/json_fields.h"
#include "model/rope_frequencies.h"
#include "weights/affine_config.h"
#include "weights/printable.h"

namespace pagoda {
namespace {

constexpr std::string_view kConfigFile = "config.json";
constexpr std::string_view kGenerationFile = "generation_config.json";

constexpr int kDefaultWindow = 4096;         // of mistral, qwen2 and qwen3 in transformers
constexpr int kDefaultMaxWindowLayers = 28;  // of qwen2 and qwen3

Result<const Family*> read_family(const JsonFields& fields) {
  PAGODA_ASSIGN_OR_RETURN(const std::string model_type, fields.text("model_type"));
  const Family* const family = find_family(model_type);
  if (family != nullptr) return family;
  return unsupported("[config] architecture {} is not supported; these are: {}",
                     printable(model_type), supported_model_types());
}

// `architectures`: a classifier, a reward model or an encoder of the family is no causal model,
// whatever else its config says. Nothing is said where the key is absent.
Status check_class(const JsonFields& fields, const Family& family) {
  const nlohmann::json* classes = fields.find("architectures");
  if (classes == nullptr) return ok_status();
  const std::string expected = fmt::format("a list of {}", family.causal_class);
  if (!classes->is_array()) return fields.wrong("architectures", expected);
  for (const nlohmann::json& name : *classes) {
    // Conversions of the first LLaMA spell it so.
    if (name == family.causal_class || name == "LLaMAForCausalLM") continue;
    return unsupported("[config] {}: architectures: {} is not supported; {} is", fields.where(),
                       printable(name.dump(), 60), family.causal_class);
  }
  return ok_status();
}

// `auto_map` names classes that lie beside the weights, whose code nothing here runs.
Status check_own_code(const JsonFields& fields, const Family& family) {
  if (!fields.has("auto_map")) return ok_status();
  PAGODA_ASSIGN_OR_RETURN(const JsonFields classes, fields.object("auto_map"));
  for (const char* key : {"AutoModel", "AutoModelForCausalLM"}) {
    const nlohmann::json* name = classes.find(key);
    if (name == nullptr) continue;
    return unsupported(
        "[config] {}: {} is code of the checkpoint's own ({}), which is not run; take auto_map out "
        "of the file if {} computes the same",
        classes.where(), key, printable(name->dump(), 60), family.causal_class);
  }
  return ok_status();
}

Status check_supported(const JsonFields& fields, const Family& family) {
  PAGODA_RETURN_IF_ERROR(check_class(fields, family));
  PAGODA_RETURN_IF_ERROR(check_own_code(fields, family));
  PAGODA_RETURN_IF_ERROR(check_config_keys(fields));
  PAGODA_ASSIGN_OR_RETURN(const std::string activation, fields.text_or("hidden_act", "silu"));
  if (activation != "silu" && activation != "swish") {
    return unsupported("[config] {}: hidden_act {} is not supported; silu is", fields.where(),
                       printable(activation));
  }
  return ok_status();
}

Status read_sizes(const JsonFields& fields, ModelConfig& config) {
  PAGODA_ASSIGN_OR_RETURN(config.vocab_size, fields.integer("vocab_size", kVocabRange));
  PAGODA_ASSIGN_OR_RETURN(config.hidden_size, fields.integer("hidden_size", kHiddenRange));
  PAGODA_ASSIGN_OR_RETURN(config.intermediate_size,
                          fields.integer("intermediate_size", kIntermediateRange));
  PAGODA_ASSIGN_OR_RETURN(config.max_position_embeddings,
                          fields.integer("max_position_embeddings", kPositionRange));
  PAGODA_ASSIGN_OR_RETURN(const double eps, fields.number_or("rms_norm_eps", kEpsilonRange, 1e-6));
  config.rms_norm_eps = static_cast<float>(eps);
  return ok_status();
}

Result<int> read_head_dim(const JsonFields& fields, const Family& family, int hidden_size,
                          int num_heads) {
  if (fields.has("head_dim") || family.default_head_dim != 0)
    return fields.integer_or("head_dim", kHeadDimRange, family.default_head_dim);
  if (hidden_size % num_heads != 0) {
    return invalid_argument(
        "[config] {}: expected hidden_size to be a multiple of {} heads, got {}", fields.where(),
        num_heads, hidden_size);
  }
  return hidden_size / num_heads;
}

// All layers are alike but for their windows.
Status read_layers(const JsonFields& fields, const Family& family, ModelConfig& config) {
  LayerConfig layer = {.has_qk_norm = family.has_qk_norm};
  PAGODA_ASSIGN_OR_RETURN(const int num_layers, fields.integer("num_hidden_layers", kLayerRange));
  PAGODA_ASSIGN_OR_RETURN(layer.num_heads, fields.integer("num_attention_heads", kHeadRange));
  PAGODA_ASSIGN_OR_RETURN(layer.num_kv_heads,
                          fields.integer_or("num_key_value_heads", kHeadRange, layer.num_heads));
  PAGODA_ASSIGN_OR_RETURN(layer.head_dim,
                          read_head_dim(fields, family, config.hidden_size, layer.num_heads));
  layer.score_scale = default_score_scale(layer.head_dim);
  config.layers.assign(num_layers, layer);
  return ok_status();
}

Status read_flags(const JsonFields& fields, const Family& family, ModelConfig& config) {
  PAGODA_ASSIGN_OR_RETURN(config.tie_word_embeddings,
                          fields.boolean_or("tie_word_embeddings", false));
  config.attention_bias = family.has_qkv_bias;
  if (family.reads_attention_bias) {
    PAGODA_ASSIGN_OR_RETURN(config.attention_bias, fields.boolean_or("attention_bias", false));
    config.attention_output_bias = config.attention_bias;
  }
  if (family.reads_mlp_bias) {
    PAGODA_ASSIGN_OR_RETURN(config.mlp_bias, fields.boolean_or("mlp_bias", false));
  }
  return ok_status();
}

bool is_filled(const nlohmann::json* block) {
  return block != nullptr && !(block->is_object() && block->empty());
}

// The block under which the scaling stands: transformers 5 calls it rope_parameters and keeps
// rope_theta in it, and takes a rope_scaling beside it instead, theta and all.
Result<JsonFields> rope_block(const JsonFields& fields) {
  const nlohmann::json* parameters = fields.find("rope_parameters");
  if (is_filled(fields.find("rope_scaling"))) {
    PAGODA_ASSIGN_OR_RETURN(const JsonFields scaling, fields.object("rope_scaling"));
    if (is_filled(parameters)) {
      spdlog::warn("[config] {}: rope_parameters is ignored: rope_scaling stands beside it",
                   fields.where());
    }
    return scaling;
  }
  static const nlohmann::json no_keys = nlohmann::json::object();
  if (parameters == nullptr) return JsonFields(no_keys, fields.where());
  for (const nlohmann::json& value : *parameters) {
    if (!value.is_object()) continue;
    return unsupported("[config] {}: rope_parameters that differ by layer type are not supported",
                       fields.where());
  }
  return fields.object("rope_parameters");
}

// The numbers of Llama 3's scaling. `trained` stands in for the original positions where they are
// not said.
Status read_llama3_scaling(const JsonFields& block, int trained, RopeScaling& scaling) {
  scaling.type = RopeScalingType::kLlama3;
  PAGODA_ASSIGN_OR_RETURN(const double low, block.number("low_freq_factor", kRopeFactorRange));
  PAGODA_ASSIGN_OR_RETURN(const double high, block.number("high_freq_factor", kRopeFactorRange));
  PAGODA_ASSIGN_OR_RETURN(const int positions, block.integer_or("original_max_position_embeddings",
                                                                kPositionRange, trained));
  scaling.low_freq_factor = static_cast<float>(low);
  scaling.high_freq_factor = static_cast<float>(high);
  scaling.original_positions = static_cast<float>(positions);
  if (scaling.low_freq_factor < scaling.high_freq_factor) return ok_status();
  return block.wrong("high_freq_factor", fmt::format("more than low_freq_factor ({})", low));
}

// A number beside a type that does not read it: it was meant for another type.
Status check_no_other_numbers(const JsonFields& block, std::string_view type) {
  for (const char* key : {"factor", "low_freq_factor", "high_freq_factor"}) {
    if (!block.has(key) || (type == "linear" && key == std::string_view("factor"))) continue;
    if (*block.find(key) == 1) continue;
    return unsupported("[config] {}: {} beside rope type {} is not supported", block.where(), key,
                       type);
  }
  return ok_status();
}

Result<RopeScaling> read_rope_scaling(const JsonFields& block, int trained) {
  RopeScaling scaling;
  const char* key = block.has("rope_type") ? "rope_type" : "type";
  PAGODA_ASSIGN_OR_RETURN(const std::string type, block.text_or(key, "default"));
  if (type != "default" && type != "linear" && type != "llama3") {
    return unsupported("[config] {}: rope type {} is not supported; default, linear and llama3 are",
                       block.where(), printable(type));
  }
  PAGODA_RETURN_IF_ERROR(check_rope_keys(block));
  if (type != "llama3") PAGODA_RETURN_IF_ERROR(check_no_other_numbers(block, type));
  if (type == "default") return scaling;
  PAGODA_ASSIGN_OR_RETURN(const double factor, block.number("factor", kRopeFactorRange));
  scaling.factor = static_cast<float>(factor);
  scaling.type = RopeScalingType::kLinear;
  if (type == "llama3") PAGODA_RETURN_IF_ERROR(read_llama3_scaling(block, trained, scaling));
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
  RopeTable table;
  PAGODA_ASSIGN_OR_RETURN(table.theta,
                          theta_place.number_or("rope_theta", kThetaRange, table.theta));
  PAGODA_ASSIGN_OR_RETURN(const RopeScaling scaling,
                          read_rope_scaling(block, config.max_position_embeddings));
  table.inv_freq = rope_inverse_frequencies(config.layers.front().head_dim, table.theta, scaling);
  config.rope_tables = {std::move(table)};
  return ok_status();
}

// layer_types: "full_attention" or "sliding_attention" for each layer.
Status read_layer_types(const JsonFields& fields, int window, ModelConfig& config) {
  const nlohmann::json& types = *fields.find("layer_types");
  if (!types.is_array() || types.size() != config.layers.size()) {
    return fields.wrong("layer_types", fmt::format("a list of {} layers", config.num_layers()));
  }
  for (int layer = 0; layer < config.num_layers(); ++layer) {
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
    config.layers[layer].window = window;
  }
  return ok_status();
}

Status read_windows(const JsonFields& fields, const Family& family, ModelConfig& config) {
  if (family.windows == WindowRule::kNone) {
    return fields.has("layer_types") ? read_layer_types(fields, 0, config) : ok_status();
  }
  // An explicit null is "no window"; an absent key has a default.
  const auto window_of = [&fields](bool is_null) -> Result<int> {
    if (is_null) return 0;
    return fields.integer_or("sliding_window", kPositionRange, kDefaultWindow);
  };
  PAGODA_ASSIGN_OR_RETURN(int window, window_of(fields.is_null("sliding_window")));
  if (family.windows == WindowRule::kAllLayers && !fields.has("layer_types")) {
    for (LayerConfig& layer : config.layers) layer.window = window;
    return ok_status();
  }
  if (family.windows == WindowRule::kByLayer) {
    PAGODA_ASSIGN_OR_RETURN(const bool use_window, fields.boolean_or("use_sliding_window", false));
    if (!use_window) window = 0;
  }
  if (fields.has("layer_types")) return read_layer_types(fields, window, config);
  PAGODA_ASSIGN_OR_RETURN(const int first, fields.integer_or("max_window_layers", {0, 1 << 20},
                                                             kDefaultMaxWindowLayers));
  for (int layer = first; layer < config.num_layers(); ++layer)
    config.layers[layer].window = window;
  return ok_status();
}

// The ids under `key` that the vocabulary has: no text holds the others, and tools write them.
Result<std::vector<int>> read_ids(const JsonFields& fields, const char* key, int vocab_size) {
  constexpr IntegerRange kWhole{-(1LL << 53), 1LL << 53};
  PAGODA_ASSIGN_OR_RETURN(const std::vector<std::int64_t> written, fields.integers(key, kWhole));
  std::vector<int> ids;
  for (const std::int64_t id : written) {
    if (id >= 0 && id < vocab_size) {
      ids.push_back(static_cast<int>(id));
      continue;
    }
    spdlog::warn("[config] {}: {}: {} is ignored: the vocabulary has {} tokens", fields.where(),
                 key, id, vocab_size);
  }
  return ids;
}

// Ids that `fields` has replace those in the config.
Status read_token_ids(const JsonFields& fields, ModelConfig& config) {
  PAGODA_ASSIGN_OR_RETURN(const std::vector<int> ends,
                          read_ids(fields, "eos_token_id", config.vocab_size));
  if (!ends.empty()) config.eos_token_ids = ends;
  PAGODA_ASSIGN_OR_RETURN(const std::vector<int> starts,
                          read_ids(fields, "bos_token_id", config.vocab_size));
  if (!starts.empty()) config.bos_token_id = starts.front();
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
  PAGODA_ASSIGN_OR_RETURN(const Family* family, read_family(fields));
  PAGODA_RETURN_IF_ERROR(check_supported(fields, *family));
  // The checkpoint reads its tensors by it; here only other libraries' formats are refused.
  PAGODA_RETURN_IF_ERROR(parse_affine_config(config_json).status());
  ModelConfig config;
  config.architecture = family->model_type;
  PAGODA_RETURN_IF_ERROR(read_sizes(fields, config));
  PAGODA_RETURN_IF_ERROR(read_layers(fields, *family, config));
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

Result<PartialSampling> parse_hf_generation_defaults(std::string_view generation_json) {
  PartialSampling defaults;
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
