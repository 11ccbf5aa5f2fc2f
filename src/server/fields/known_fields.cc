#include "server/fields/known_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "core/json.h"

namespace pagoda {
namespace {

struct KnownField {
  FieldPlace place;
  std::string_view from;
  std::string_view name;
  std::string_view neutral;  // as in RefusedField; kAnything: every value is accepted
  std::string_view instead = {};
};

constexpr auto kAll = FieldPlace::kAll;
constexpr auto kChat = FieldPlace::kChat;
constexpr auto kResponses = FieldPlace::kResponses;
constexpr auto kMessages = FieldPlace::kMessages;

constexpr std::string_view kAnything = {};
constexpr std::string_view kNothing = R"([false, [], {}, ""])";
constexpr std::string_view kOnlyNull = "[]";
constexpr std::string_view kOnlyFalse = "[false]";

constexpr std::string_view kOpenAi = "OpenAI";
constexpr std::string_view kVllm = "vLLM";
constexpr std::string_view kSglang = "SGLang";
constexpr std::string_view kLlamaCpp = "llama.cpp";
constexpr std::string_view kOllama = "Ollama";

constexpr KnownField kKnownFields[] = {
    // OpenAI's fields. The first ones tell whose request it is, and where it is kept and billed.
    {kAll, kOpenAi, "user", kAnything},
    {kAll, kOpenAi, "metadata", kAnything},
    {kAll, kOpenAi, "store", kAnything},
    {kAll, kOpenAi, "service_tier", kAnything},
    {kAll, kOpenAi, "safety_identifier", kAnything},
    {kAll, kOpenAi, "prompt_cache_key", kAnything},
    {kAll, kOpenAi, "prompt_cache_retention", kAnything},
    {kAll, kOpenAi, "prompt_cache_options", kAnything},
    {kAll, kOpenAi, "prediction", kAnything},
    {kChat, kOpenAi, "verbosity", kAnything},
    {kAll, kOpenAi, "best_of", "[1]"},
    {kChat, kOpenAi, "moderation", kNothing},
    {kChat, kOpenAi, "functions", kNothing},
    {kChat, kOpenAi, "function_call", R"(["none", "auto"])"},
    {kChat, kOpenAi, "audio", kNothing},
    {kChat, kOpenAi, "modalities", R"([["text"], []])"},
    {kChat, kOpenAi, "web_search_options", kNothing},

    // Fields of chats that /v1/responses and /v1/messages lack or have under other names.
    {kResponses, kOpenAi, "n", "[1]", "a request for each answer"},
    {kResponses, kLlamaCpp, "n_cmpl", "[1]", "a request for each answer"},
    {kResponses, kOpenAi, "messages", kNothing, "input"},
    {kResponses, kOpenAi, "max_tokens", kOnlyNull, "max_output_tokens"},
    {kResponses, kOpenAi, "max_completion_tokens", kOnlyNull, "max_output_tokens"},
    {kResponses, kSglang, "max_new_tokens", kOnlyNull, "max_output_tokens"},
    {kResponses, kLlamaCpp, "n_predict", kOnlyNull, "max_output_tokens"},
    {kResponses, kOllama, "num_predict", kOnlyNull, "max_output_tokens"},
    {kResponses, kOpenAi, "response_format", R"([{}, {"type": "text"}])", "text.format"},
    {kMessages, kOpenAi, "n", "[1]", "a request for each answer"},
    {kMessages, kLlamaCpp, "n_cmpl", "[1]", "a request for each answer"},
    {kMessages, kOpenAi, "max_completion_tokens", kOnlyNull, "max_tokens"},
    {kMessages, kSglang, "max_new_tokens", kOnlyNull, "max_tokens"},
    {kMessages, kLlamaCpp, "n_predict", kOnlyNull, "max_tokens"},
    {kMessages, kOllama, "num_predict", kOnlyNull, "max_tokens"},
    {kMessages, kOpenAi, "stop", kNothing, "stop_sequences"},

    {kAll, kVllm, "use_beam_search", kOnlyFalse},
    {kAll, kVllm, "length_penalty", "[1]"},
    {kAll, kVllm, "early_stopping", kOnlyFalse},
    {kAll, kVllm, "truncate_prompt_tokens", kOnlyNull, "a shorter prompt"},
    {kAll, kVllm, "logits_processors", kNothing},
    {kAll, kVllm, "logprob_token_ids", kNothing},
    {kAll, kVllm, "flat_logprobs", kOnlyFalse},
    {kAll, kVllm, "kv_transfer_params", kNothing},
    {kAll, kVllm, "ec_transfer_params", kNothing},
    {kAll, kVllm, "vllm_xargs", kNothing},
    {kAll, kVllm, "extra_args", kNothing},
    {kAll, kVllm, "prompt_embeds", kNothing},
    {kAll, kVllm, "repetition_detection", kNothing},
    {kAll, kVllm, "watermarking", kOnlyFalse},
    {kAll, kVllm, "detokenize", "[true]"},
    {kAll, kVllm, "lora_request", kNothing},
    {kAll, kVllm, "thinking_token_budget", "[-1]"},
    {kAll, kVllm, "return_prompt_text", kOnlyFalse, "return_token_ids"},
    {kChat, kVllm, "documents", kNothing},
    {kChat, kVllm, "chat_template", kNothing, "the checkpoint's own"},
    {kChat, kVllm, "mm_processor_kwargs", kNothing},
    {kChat, kVllm, "media_io_kwargs", kNothing},

    {kAll, kSglang, "stop_regex", kNothing, "stop"},
    {kAll, kSglang, "no_stop_trim", kOnlyFalse, "include_stop_str_in_output"},
    {kAll, kSglang, "lora_path", kNothing},
    {kAll, kSglang, "session_params", kNothing},
    {kAll, kSglang, "custom_params", kNothing},
    {kAll, kSglang, "custom_logit_processor", kNothing},
    {kAll, kSglang, "structural_tag", kNothing},
    {kAll, kSglang, "return_hidden_states", kOnlyFalse},
    {kAll, kSglang, "return_routed_experts", kOnlyFalse},
    {kAll, kSglang, "return_cached_tokens_details", kOnlyFalse},
    {kAll, kSglang, "return_prompt_token_ids", kOnlyFalse, "return_token_ids"},
    {kAll, kSglang, "return_meta_info", kOnlyFalse},
    {kAll, kSglang, "sampling_params", kNothing, "its fields beside the prompt"},
    {kChat, kSglang, "input_ids", kNothing, "/v1/completions"},
    {kChat, kSglang, "task", kNothing},
    {kChat, kSglang, "reasoning", kNothing, "chat_template_kwargs, for the template"},
    {kChat, kSglang, "use_audio_in_video", kOnlyFalse},

    // llama.cpp's fields for sampling, the form of the answer, and kinds of input.
    {kAll, kLlamaCpp, "adaptive_target", "[-1]"},
    {kAll, kLlamaCpp, "top_n_sigma", "[-1, 0]"},
    {kAll, kLlamaCpp, "penalize_nl", "[true]"},
    {kAll, kLlamaCpp, "penalty_prompt", kNothing},
    {kAll, kLlamaCpp, "tfs_z", "[1]"},
    {kAll, kLlamaCpp, "samplers", kNothing, "the order that is built in"},
    {kAll, kLlamaCpp, "min_keep", "[0, 1]"},
    {kAll, kLlamaCpp, "n_probs", "[0]", "logprobs"},
    {kAll, kLlamaCpp, "post_sampling_probs", kOnlyFalse},
    {kAll, kLlamaCpp, "return_tokens", kOnlyFalse, "return_token_ids"},
    {kAll, kLlamaCpp, "response_fields", kNothing},
    {kAll, kLlamaCpp, "timings_per_token", kOnlyFalse},
    {kAll, kLlamaCpp, "return_progress", kOnlyFalse},
    {kAll, kLlamaCpp, "n_indent", "[0]"},
    {kAll, kLlamaCpp, "t_max_predict_ms", "[0, -1]", "max_tokens"},
    {kAll, kLlamaCpp, "t_max_prompt_ms", "[0, -1]"},
    {kAll, kLlamaCpp, "lora", kNothing},
    {kAll, kLlamaCpp, "grammar_lazy", kOnlyFalse},
    {kAll, kLlamaCpp, "grammar_type", kNothing},
    {kAll, kLlamaCpp, "grammar_triggers", kNothing},
    {kAll, kLlamaCpp, "preserved_tokens", kNothing},
    {kAll, kLlamaCpp, "image_data", kNothing},
    {kAll, kLlamaCpp, "system_prompt", kNothing, "a message of the role system"},
    {kAll, kLlamaCpp, "input_prefix", kNothing},
    {kAll, kLlamaCpp, "input_suffix", kNothing},
    {kAll, kLlamaCpp, "input_extra", kNothing},
    {kChat, kLlamaCpp, "chat_format", "[0]"},
    {kChat, kLlamaCpp, "chat_parser", kNothing},
    {kChat, kLlamaCpp, "reasoning_in_content", R"([true, false])"},
    {kChat, kLlamaCpp, "thinking_forced_open", kOnlyFalse},

    {kChat, kOllama, "raw", kOnlyFalse, "/v1/completions"},
    {kAll, kOllama, "template", kNothing, "the checkpoint's own"},
    {kAll, kOllama, "system", kNothing, "a message of the role system"},
    {kAll, kOllama, "context", kNothing, "the conversation itself"},
    {kAll, kOllama, "images", kNothing, kImagesAreNotRead},
    {kAll, kOllama, "penalize_newline", "[true]"},
    {kAll, kOllama, "_debug_render_only", kOnlyFalse, "/tokenize"},
};

// Options of Ollama's runner, which are ignored. num_ctx asks for room: there is enough, or the
// prompt is refused.
constexpr std::string_view kLoadingOptions[] = {
    "num_ctx",    "num_keep", "num_batch",  "num_gpu",  "main_gpu",
    "low_vram",   "f16_kv",   "vocab_only", "use_mmap", "use_mlock",
    "num_thread", "numa",     "logits_all", "num_gqa",  "draft_num_predict"};

// Names in `options` that the field table has too.
constexpr std::string_view kAnswerOptions[] = {"num_predict",
                                               "seed",
                                               "temperature",
                                               "top_k",
                                               "top_p",
                                               "min_p",
                                               "typical_p",
                                               "tfs_z",
                                               "stop",
                                               "repeat_penalty",
                                               "presence_penalty",
                                               "repeat_last_n",
                                               "frequency_penalty",
                                               "mirostat",
                                               "mirostat_tau",
                                               "mirostat_eta",
                                               "penalize_newline"};

// kLengthOption means the same as each of kLengths.
constexpr std::string_view kLengthOption = "num_predict";
constexpr std::array<std::string_view, 3> kLengths = {"max_tokens", "max_new_tokens",
                                                      "max_completion_tokens"};

template <typename Names>
bool contains(const Names& names, std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// Returns the field `options`. It reads nothing, because lift_options() has moved its names out.
Field options_field() {
  return {.name = "options",
          .target = CustomField{[](std::string_view, const RequestJson&) {
                                  return std::optional<ApiError>();
                                },
                                R"({"type": "object"})"},
          .description = "The names in it are taken as if they stood beside it.",
          .from = kOllama};
}

}  // namespace

void add_known_fields(std::vector<Field>& table, FieldPlace place) {
  const bool chats = place != FieldPlace::kCompletions;
  std::set<std::string_view> names;
  for (const Field& field : table) names.insert(field.name);
  for (const KnownField& field : kKnownFields) {
    const bool is_here =
        field.place == kAll || field.place == place || (field.place == kChat && chats);
    if (!is_here || names.contains(field.name)) continue;
    FieldTarget target = IgnoredField{};
    if (field.neutral.data() != nullptr)
      target = RefusedField{.neutral = field.neutral, .instead = field.instead};
    table.push_back({.name = field.name, .target = std::move(target), .from = field.from});
  }
  table.push_back(options_field());
}

void describe_options(nlohmann::json& schema, const std::vector<Field>& table) {
  using nlohmann::json;
  const json null = {{"type", "null"}};
  json options = json::object();
  for (const std::string_view name : kLoadingOptions)
    options[std::string(name)] = {{"description", "Accepted; changes nothing."}};
  for (const Field& field : table) {
    std::vector<std::string_view> names = {field.name};
    names.insert(names.end(), field.aliases.begin(), field.aliases.end());
    const auto found = std::find_if(names.begin(), names.end(), [](std::string_view name) {
      return contains(kAnswerOptions, name);
    });
    if (found == names.end()) continue;
    const std::string option(*found);
    options[option] = schema.at("properties").at(option);
    if (option == kLengthOption) names.insert(names.end(), kLengths.begin(), kLengths.end());
    json beside = json::object();
    for (const std::string_view name : names) beside[std::string(name)] = null;
    const json within = {{"options", {{"properties", {{option, null}}}}}};
    add_rule(schema, {{"anyOf", {{{"properties", beside}}, {{"properties", within}}}}});
  }
  json& described = schema.at("properties").at("options");
  described["properties"] = std::move(options);
}

std::optional<ApiError> lift_options(RequestJson& object, std::vector<std::string>& unknown_names) {
  const auto found = object.find("options");
  if (found == object.end() || found->is_null()) return {};
  const RequestJson options = std::move(*found);
  *found = nullptr;
  if (!options.is_object()) return wrong_type("options", "an object", options);
  for (const auto& [name, value] : options.items()) {
    if (value.is_null() || contains(kLoadingOptions, name)) continue;
    if (!contains(kAnswerOptions, name)) {
      unknown_names.push_back(fmt::format("options.{}", name));
      continue;
    }
    RequestJson& beside = object[name];
    if (!beside.is_null() && beside != value) {
      return bad_request(
          name,
          fmt::format("'options.{}' and '{}' mean the same, but their values differ", name, name));
    }
    beside = value;
  }
  return {};
}

}  // namespace pagoda
