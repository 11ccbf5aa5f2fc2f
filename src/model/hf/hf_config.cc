#include "model/hf/hf_config.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "core/json.h"
#include "core/log.h"
#include "model/config_limits.h"
#include "model/family.h"
#include "model/hf/hf_keys.h"
#include "model/hf/hf_layers.h"
#include "model/hf/hf_rope.h"
#include "model/hf/json_fields.h"
#include "model/refused_parts.h"
#include "weights/mlx_quantization.h"
#include "weights/printable.h"

namespace pagoda {
namespace {

constexpr std::string_view kConfigFile = "config.json";
constexpr std::string_view kGenerationFile = "generation_config.json";

constexpr NumberRange kMultiplierRange{1e-6, 1e6};

Result<const Family*> family_of(std::string_view model_type, const nlohmann::json& keys) {
  const Family* const family = find_family(model_type);
  if (family != nullptr) return family;
  return unsupported("[config] architecture {}{} is not supported; these are: {}",
                     printable(model_type), refused_parts(keys), supported_model_types());
}

// Returns the name of the family's class without its head: "LlamaModel".
std::string base_class_of(const Family& family) {
  if (!family.base_class.empty()) return std::string(family.base_class);
  constexpr std::string_view kOfHead = "ForCausalLM";
  std::string name(family.causal_class);
  return name.replace(name.size() - kOfHead.size(), kOfHead.size(), "Model");
}

// Returns the name of the family's class that classifies texts: "LlamaForSequenceClassification".
std::string score_class_of(const Family& family) {
  constexpr std::string_view kBase = "Model";
  std::string name = base_class_of(family);
  return name.replace(name.size() - kBase.size(), kBase.size(), "ForSequenceClassification");
}

bool is_class(const JsonFields& fields, const std::string& name) {
  const nlohmann::json* classes = fields.find("architectures");
  return classes != nullptr && *classes == nlohmann::json{name};
}

// Checks that `architectures` names the causal model. A reward model or an encoder of the family is
// refused, even if the rest of its config fits. The key may be absent.
Status check_class(const JsonFields& fields, std::string_view causal_class) {
  const nlohmann::json* classes = fields.find("architectures");
  if (classes == nullptr) return ok_status();
  const std::string expected = fmt::format("a list of {}", causal_class);
  if (!classes->is_array()) return fields.wrong("architectures", expected);
  for (const nlohmann::json& name : *classes) {
    // Conversions of the first LLaMA spell the class this way.
    if (name == causal_class || name == "LLaMAForCausalLM") continue;
    return unsupported("[config] {}: architectures: {} is not supported; {} is", fields.where(),
                       printable(json_text(name), 60), causal_class);
  }
  return ok_status();
}

// Does what check_class does, but also accepts the family's classes for embeddings and for scores.
Status check_text_class(const JsonFields& fields, const Family& family) {
  if (is_class(fields, base_class_of(family)) || is_class(fields, score_class_of(family)))
    return ok_status();
  return check_class(fields, family.causal_class);
}

// Refuses an `auto_map`: it names classes whose code is beside the weights, and no code of a
// checkpoint is run. A class that transformers has adopted (`taken_over`) is accepted.
Status check_own_code(const JsonFields& fields, std::string_view causal_class,
                      std::string_view taken_over) {
  if (!fields.has("auto_map")) return ok_status();
  PAGODA_ASSIGN_OR_RETURN(const JsonFields classes, fields.object("auto_map"));
  for (const char* key : {"AutoModel", "AutoModelForCausalLM"}) {
    const nlohmann::json* name = classes.find(key);
    if (name == nullptr) continue;
    // The code may be in another repository:
    // "microsoft/Phi-3.5-mini-instruct--modeling_phi3.Phi3ForCausalLM".
    const bool is_taken_over = !taken_over.empty() && name->is_string() &&
                               name->get_ref<const std::string&>().ends_with(taken_over);
    if (is_taken_over) continue;
    return unsupported(
        "[config] {}: {} is code of the checkpoint's own ({}), which is not run; take auto_map out "
        "of the file if {} computes the same",
        classes.where(), key, printable(name->dump(), 60), causal_class);
  }
  return ok_status();
}

// The text model of a config.json: its keys, and the family's defaults for absent keys. The keys of
// a text tower are in its text_config. Beside it are tie_word_embeddings and perhaps the bos and
// eos ids.
struct TextConfig {
  const Family* family;
  nlohmann::json keys;
};

Result<TextConfig> merge_defaults(std::string_view model_type, const nlohmann::json& keys) {
  TextConfig text;
  PAGODA_ASSIGN_OR_RETURN(text.family, family_of(model_type, keys));
  text.keys = parse_json(text.family->defaults);
  // rope_scaling is an older spelling of rope_parameters.
  const auto scaling = keys.find("rope_scaling");
  if (text.family->reads_rope_scaling && scaling != keys.end() && !scaling->empty())
    text.keys.erase("rope_parameters");
  for (const auto& [key, value] : keys.items()) {
    // A null rope_parameters gives the family's default rotation, as an absent one does.
    if (key == "rope_parameters" && value.is_null()) continue;
    text.keys[key] = value;
  }
  return text;
}

Result<TextConfig> read_tower(const JsonFields& fields, const TextTower& tower) {
  PAGODA_RETURN_IF_ERROR(check_class(fields, tower.causal_class));
  PAGODA_RETURN_IF_ERROR(check_own_code(fields, tower.causal_class, {}));
  PAGODA_RETURN_IF_ERROR(check_tower_keys(fields));
  PAGODA_ASSIGN_OR_RETURN(const JsonFields text, fields.object("text_config"));
  constexpr const char* kCap = "final_logit_softcapping";
  if (!tower.caps_logits && text.has(kCap) && *text.find(kCap) != 0) {
    return unsupported("[config] {}: {} is not supported for {}", text.where(), kCap,
                       tower.causal_class);
  }
  PAGODA_ASSIGN_OR_RETURN(const std::string model_type,
                          text.text_or("model_type", tower.default_text_type));
  nlohmann::json keys = text.json();
  for (const char* key : {"architectures", "auto_map"}) keys.erase(key);
  for (const char* key : {"eos_token_id", "bos_token_id"}) {
    if (fields.has(key)) keys[key] = *fields.find(key);
  }
  PAGODA_ASSIGN_OR_RETURN(keys["tie_word_embeddings"],
                          fields.boolean_or("tie_word_embeddings", tower.ties_by_default));
  return merge_defaults(model_type, keys);
}

Result<TextConfig> read_text_config(const JsonFields& fields) {
  PAGODA_ASSIGN_OR_RETURN(const std::string model_type, fields.text("model_type"));
  if (const TextTower* const tower = find_text_tower(model_type)) return read_tower(fields, *tower);
  PAGODA_ASSIGN_OR_RETURN(TextConfig text, merge_defaults(model_type, fields.json()));
  PAGODA_RETURN_IF_ERROR(check_text_class(fields, *text.family));
  PAGODA_RETURN_IF_ERROR(check_own_code(fields, text.family->causal_class, text.family->own_code));
  return text;
}

Result<Activation> read_activation(const JsonFields& fields, const Family& family) {
  const char* key = family.reads("hidden_activation") ? "hidden_activation" : "hidden_act";
  PAGODA_ASSIGN_OR_RETURN(const std::string name, fields.text_or(key, "silu"));
  if (name == "silu" || name == "swish") return Activation::kSilu;
  if (name == "gelu_pytorch_tanh" || name == "gelu_new") return Activation::kGeluTanh;
  return unsupported("[config] {}: {} {} is not supported; silu and gelu_pytorch_tanh are",
                     fields.where(), key, printable(name));
}

// Reads the activation, the factors of embeddings, block outputs and logits, and the cap of logits.
Status read_multipliers(const JsonFields& fields, const Family& family, ModelConfig& config) {
  const auto read = [&](const char* key, double otherwise) -> Result<double> {
    if (!family.reads(key)) return otherwise;
    return fields.number_or(key, kMultiplierRange, otherwise);
  };
  PAGODA_ASSIGN_OR_RETURN(config.glu.activation, read_activation(fields, family));
  if (family.norms_lack_one) config.norm_offset = 1;
  const double root = family.scales_embedding ? std::sqrt(config.hidden_size) : 1;
  PAGODA_ASSIGN_OR_RETURN(const double of_embedding, read("embedding_multiplier", root));
  PAGODA_ASSIGN_OR_RETURN(const double of_blocks, read("residual_multiplier", 1));
  PAGODA_ASSIGN_OR_RETURN(const double logits_divisor, read("logits_scaling", 1));
  config.embedding_factor = static_cast<float>(of_embedding);
  config.residual_factor = static_cast<float>(of_blocks);
  config.logits_factor = static_cast<float>(1 / logits_divisor);
  if (!family.reads("final_logit_softcapping")) return ok_status();
  PAGODA_ASSIGN_OR_RETURN(const double cap,
                          fields.number_or("final_logit_softcapping", {0, 1e6}, 0));
  config.logits_cap = static_cast<float>(cap);
  return ok_status();
}

Status read_sizes(const JsonFields& fields, ModelConfig& config) {
  PAGODA_ASSIGN_OR_RETURN(config.vocab_size, fields.integer("vocab_size", kVocabRange));
  PAGODA_ASSIGN_OR_RETURN(config.hidden_size, fields.integer("hidden_size", kHiddenRange));
  PAGODA_ASSIGN_OR_RETURN(config.max_position_embeddings,
                          fields.integer("max_position_embeddings", kPositionRange));
  PAGODA_ASSIGN_OR_RETURN(const double eps, fields.number_or("rms_norm_eps", kEpsilonRange, 1e-6));
  config.rms_norm_eps = static_cast<float>(eps);
  return ok_status();
}

Status read_flags(const JsonFields& fields, const Family& family, ModelConfig& config) {
  PAGODA_ASSIGN_OR_RETURN(config.tie_word_embeddings,
                          fields.boolean_or("tie_word_embeddings", false));
  if (family.reads_attention_bias) {
    PAGODA_ASSIGN_OR_RETURN(config.attention_bias, fields.boolean_or("attention_bias", false));
    config.attention_output_bias = config.attention_bias;
  }
  if (family.reads_mlp_bias) {
    PAGODA_ASSIGN_OR_RETURN(config.mlp_bias, fields.boolean_or("mlp_bias", false));
  }
  return ok_status();
}

// Returns the ids under `key` that the vocabulary has. Some tools also write ids beyond it, which
// no text can contain.
Result<std::vector<int>> read_ids(const JsonFields& fields, const char* key, int vocab_size) {
  constexpr IntegerRange kWhole{-(1LL << 53), 1LL << 53};
  PAGODA_ASSIGN_OR_RETURN(const std::vector<std::int64_t> written, fields.integers(key, kWhole));
  std::vector<int> ids;
  for (const std::int64_t id : written) {
    if (id >= 0 && id < vocab_size) {
      ids.push_back(static_cast<int>(id));
      continue;
    }
    log_warning("[config] {}: {}: {} is ignored: the vocabulary has {} tokens", fields.where(), key,
                id, vocab_size);
  }
  return ids;
}

// Reads token ids. Ids that `fields` has replace those in the config.
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
  PAGODA_ASSIGN_OR_RETURN(const TextConfig text,
                          read_text_config(JsonFields(json, std::string(kConfigFile))));
  const Family* const family = text.family;
  const JsonFields fields(text.keys, std::string(kConfigFile));
  PAGODA_RETURN_IF_ERROR(check_config_keys(fields, *family));
  // Checkpoint uses the result when it reads tensors. Here only formats of other libraries are
  // refused.
  PAGODA_RETURN_IF_ERROR(parse_mlx_quantization(config_json).status());
  ModelConfig config;
  config.architecture = family->model_type;
  PAGODA_RETURN_IF_ERROR(read_sizes(fields, config));
  PAGODA_RETURN_IF_ERROR(read_layers(fields, *family, config));
  PAGODA_RETURN_IF_ERROR(read_flags(fields, *family, config));
  config.has_score_head = is_class(fields, score_class_of(*family));
  config.has_head = !config.has_score_head &&
                    (config.tie_word_embeddings || !is_class(fields, base_class_of(*family)));
  PAGODA_RETURN_IF_ERROR(read_multipliers(fields, *family, config));
  if (family->finish_hf_config != nullptr)
    PAGODA_RETURN_IF_ERROR(family->finish_hf_config(fields, config));
  PAGODA_RETURN_IF_ERROR(read_rope(fields, *family, config));
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
