#include "server/known_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace pagoda {
namespace {

struct KnownField {
  FieldPlace place;
  std::string_view from;
  std::string_view name;
  std::string_view neutral;  // as RefusedField has it; kAnything: accepted whatever it is
  std::string_view instead = {};
};

constexpr auto kBoth = FieldPlace::kBoth;
constexpr auto kCompletions = FieldPlace::kCompletions;
constexpr auto kChat = FieldPlace::kChat;

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
    // Whose request it is, where it is kept and billed.
    {kBoth, kOpenAi, "user", kAnything},
    {kBoth, kOpenAi, "metadata", kAnything},
    {kBoth, kOpenAi, "store", kAnything},
    {kBoth, kOpenAi, "service_tier", kAnything},
    {kBoth, kOpenAi, "safety_identifier", kAnything},
    {kBoth, kOpenAi, "prompt_cache_key", kAnything},
    {kBoth, kOpenAi, "prompt_cache_retention", kAnything},
    {kBoth, kOpenAi, "prompt_cache_options", kAnything},
    {kBoth, kOpenAi, "prediction", kAnything},
    {kChat, kOpenAi, "verbosity", kAnything},
    {kBoth, kOpenAi, "best_of", "[1]"},
    {kChat, kOpenAi, "moderation", kNothing},
    {kCompletions, kOpenAi, "suffix", kNothing},
    {kChat, kOpenAi, "functions", kNothing},
    {kChat, kOpenAi, "function_call", R"(["none", "auto"])"},
    {kChat, kOpenAi, "audio", kNothing},
    {kChat, kOpenAi, "modalities", R"([["text"], []])"},
    {kChat, kOpenAi, "web_search_options", kNothing},

    {kBoth, kVllm, "request_id", kAnything},
    {kBoth, kVllm, "session_id", kAnything},
    {kBoth, kVllm, "spaces_between_special_tokens", kAnything},
    {kBoth, kVllm, "stream_interval", kAnything},
    {kBoth, kVllm, "truncation_side", kAnything},
    {kBoth, kVllm, "return_token_offsets", kAnything},
    {kBoth, kVllm, "return_mm_kwargs", kAnything},
    {kBoth, kVllm, "routed_experts_prompt_start", kAnything},
    {kBoth, kVllm, "skip_reading_prefix_cache", kAnything},
    {kBoth, kVllm, "use_beam_search", kOnlyFalse},
    {kBoth, kVllm, "length_penalty", "[1]"},
    {kBoth, kVllm, "early_stopping", kOnlyFalse},
    {kBoth, kVllm, "truncate_prompt_tokens", kOnlyNull, "a shorter prompt"},
    {kBoth, kVllm, "logits_processors", kNothing},
    {kBoth, kVllm, "logprob_token_ids", kNothing},
    {kBoth, kVllm, "flat_logprobs", kOnlyFalse},
    {kBoth, kVllm, "kv_transfer_params", kNothing},
    {kBoth, kVllm, "ec_transfer_params", kNothing},
    {kBoth, kVllm, "vllm_xargs", kNothing},
    {kBoth, kVllm, "extra_args", kNothing},
    {kBoth, kVllm, "prompt_embeds", kNothing},
    {kBoth, kVllm, "repetition_detection", kNothing},
    {kBoth, kVllm, "watermarking", kOnlyFalse},
    {kBoth, kVllm, "detokenize", "[true]"},
    {kBoth, kVllm, "lora_request", kNothing},
    {kBoth, kVllm, "thinking_token_budget", "[-1]"},
    {kBoth, kVllm, "return_prompt_text", kOnlyFalse, "return_token_ids"},
    {kChat, kVllm, "documents", kNothing},
    {kChat, kVllm, "chat_template", kNothing, "the checkpoint's own"},
    {kChat, kVllm, "mm_processor_kwargs", kNothing},
    {kChat, kVllm, "media_io_kwargs", kNothing},

    {kBoth, kSglang, "rid", kAnything},
    {kBoth, kSglang, "extra_key", kAnything},
    {kBoth, kSglang, "custom_labels", kAnything},
    {kBoth, kSglang, "routed_dp_rank", kAnything},
    {kBoth, kSglang, "data_parallel_rank", kAnything},
    {kBoth, kSglang, "disagg_prefill_dp_rank", kAnything},
    {kBoth, kSglang, "bootstrap_host", kAnything},
    {kBoth, kSglang, "bootstrap_port", kAnything},
    {kBoth, kSglang, "bootstrap_room", kAnything},
    {kBoth, kSglang, "ngram_corpus_id", kAnything},
    {kBoth, kSglang, "routed_experts_start_len", kAnything},
    {kChat, kSglang, "stream_reasoning", kAnything},
    {kChat, kSglang, "max_dynamic_patch", kAnything},
    {kChat, kSglang, "min_dynamic_patch", kAnything},
    {kBoth, kSglang, "images_config", kAnything},
    {kBoth, kSglang, "stop_regex", kNothing, "stop"},
    {kBoth, kSglang, "no_stop_trim", kOnlyFalse, "include_stop_str_in_output"},
    {kBoth, kSglang, "lora_path", kNothing},
    {kBoth, kSglang, "session_params", kNothing},
    {kBoth, kSglang, "custom_params", kNothing},
    {kBoth, kSglang, "custom_logit_processor", kNothing},
    {kBoth, kSglang, "structural_tag", kNothing},
    {kBoth, kSglang, "return_hidden_states", kOnlyFalse},
    {kBoth, kSglang, "return_routed_experts", kOnlyFalse},
    {kBoth, kSglang, "return_cached_tokens_details", kOnlyFalse},
    {kBoth, kSglang, "return_prompt_token_ids", kOnlyFalse, "return_token_ids"},
    {kBoth, kSglang, "return_meta_info", kOnlyFalse},
    {kBoth, kSglang, "sampling_params", kNothing, "its fields beside the prompt"},
    {kChat, kSglang, "input_ids", kNothing, "/v1/completions"},
    {kChat, kSglang, "task", kNothing},
    {kChat, kSglang, "reasoning", kNothing, "chat_template_kwargs, for the template"},
    {kChat, kSglang, "use_audio_in_video", kOnlyFalse},

    // How llama.cpp keeps and reuses its context, and what it tells of its speed.
    {kBoth, kLlamaCpp, "cache_prompt", kAnything},
    {kBoth, kLlamaCpp, "id_slot", kAnything},
    {kBoth, kLlamaCpp, "slot_id", kAnything},
    {kBoth, kLlamaCpp, "n_keep", kAnything},
    {kBoth, kLlamaCpp, "n_discard", kAnything},
    {kBoth, kLlamaCpp, "n_cache_reuse", kAnything},
    {kBoth, kLlamaCpp, "timings_per_token", kAnything},
    {kBoth, kLlamaCpp, "return_progress", kAnything},
    {kBoth, kLlamaCpp, "sse_ping_interval", kAnything},
    {kBoth, kLlamaCpp, "verbose", kAnything},
    {kBoth, kLlamaCpp, "backend_sampling", kAnything},
    {kBoth, kLlamaCpp, "speculative.n_max", kAnything},
    {kBoth, kLlamaCpp, "speculative.n_min", kAnything},
    {kBoth, kLlamaCpp, "speculative.p_min", kAnything},
    {kBoth, kLlamaCpp, "speculative.type", kAnything},
    {kBoth, kLlamaCpp, "speculative.ngram_size_n", kAnything},
    {kBoth, kLlamaCpp, "speculative.ngram_size_m", kAnything},
    {kBoth, kLlamaCpp, "speculative.ngram_m_hits", kAnything},
    {kChat, kLlamaCpp, "parse_tool_calls", kAnything},
    {kBoth, kLlamaCpp, "adaptive_decay", kAnything},
    {kBoth, kLlamaCpp, "adaptive_target", "[-1]"},
    {kBoth, kLlamaCpp, "top_n_sigma", "[-1, 0]"},
    {kBoth, kLlamaCpp, "repeat_last_n", "[-1]", "-1, penalties that look at the whole context"},
    {kBoth, kLlamaCpp, "penalize_nl", "[true]"},
    {kBoth, kLlamaCpp, "penalty_prompt", kNothing},
    {kBoth, kLlamaCpp, "tfs_z", "[1]"},
    {kBoth, kLlamaCpp, "samplers", kNothing, "the order that is built in"},
    {kBoth, kLlamaCpp, "min_keep", "[0, 1]"},
    {kBoth, kLlamaCpp, "n_probs", "[0]", "logprobs"},
    {kBoth, kLlamaCpp, "post_sampling_probs", kOnlyFalse},
    {kBoth, kLlamaCpp, "return_tokens", kOnlyFalse, "return_token_ids"},
    {kBoth, kLlamaCpp, "response_fields", kNothing},
    {kBoth, kLlamaCpp, "n_indent", "[0]"},
    {kBoth, kLlamaCpp, "t_max_predict_ms", "[0, -1]", "max_tokens"},
    {kBoth, kLlamaCpp, "t_max_prompt_ms", "[0, -1]"},
    {kBoth, kLlamaCpp, "lora", kNothing},
    {kBoth, kLlamaCpp, "grammar_lazy", kOnlyFalse},
    {kBoth, kLlamaCpp, "grammar_type", kNothing},
    {kBoth, kLlamaCpp, "grammar_triggers", kNothing},
    {kBoth, kLlamaCpp, "preserved_tokens", kNothing},
    {kBoth, kLlamaCpp, "image_data", kNothing},
    {kBoth, kLlamaCpp, "system_prompt", kNothing, "a message of the role system"},
    {kBoth, kLlamaCpp, "input_prefix", kNothing},
    {kBoth, kLlamaCpp, "input_suffix", kNothing},
    {kBoth, kLlamaCpp, "input_extra", kNothing},
    {kChat, kLlamaCpp, "chat_format", "[0]"},
    {kChat, kLlamaCpp, "chat_parser", kNothing},
    {kChat, kLlamaCpp, "reasoning_in_content", R"([true, false])"},
    {kChat, kLlamaCpp, "thinking_forced_open", kOnlyFalse},
    {kChat, kLlamaCpp, "reasoning_budget_tokens", "[-1]"},
    {kChat, kLlamaCpp, "reasoning_budget_start_tag", kAnything},
    {kChat, kLlamaCpp, "reasoning_budget_end_tag", kAnything},
    {kChat, kLlamaCpp, "reasoning_budget_message", kAnything},
    {kChat, kLlamaCpp, "reasoning_budget_arm_immediately", kAnything},

    {kBoth, kOllama, "keep_alive", kAnything},
    {kBoth, kOllama, "shift", kAnything},
    {kBoth, kOllama, "truncate", kAnything},
    {kCompletions, kOllama, "raw", kAnything},
    {kChat, kOllama, "raw", kOnlyFalse, "/v1/completions"},
    {kBoth, kOllama, "template", kNothing, "the checkpoint's own"},
    {kBoth, kOllama, "system", kNothing, "a message of the role system"},
    {kBoth, kOllama, "context", kNothing, "the conversation itself"},
    {kBoth, kOllama, "images", kNothing},
    {kBoth, kOllama, "penalize_newline", "[true]"},
    {kBoth, kOllama, "_debug_render_only", kOnlyFalse, "/tokenize"},
};

// Options of Ollama's runner. num_ctx asks for room, which there is, or a prompt is refused.
constexpr std::string_view kLoadingOptions[] = {
    "num_ctx",    "num_keep", "num_batch",  "num_gpu",  "main_gpu",
    "low_vram",   "f16_kv",   "vocab_only", "use_mmap", "use_mlock",
    "num_thread", "numa",     "logits_all", "num_gqa",  "draft_num_predict"};

// Names in it that the field table has too.
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

// It says the same as these too.
constexpr std::string_view kLengthOption = "num_predict";
constexpr std::array<std::string_view, 3> kLengths = {"max_tokens", "max_new_tokens",
                                                      "max_completion_tokens"};

template <typename Names>
bool contains(const Names& names, std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// The names have been lifted out before the table is read.
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
  for (const KnownField& field : kKnownFields) {
    if (field.place != FieldPlace::kBoth && field.place != place) continue;
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
  described["additionalProperties"] = false;
}

std::optional<ApiError> lift_options(RequestJson& object) {
  const auto found = object.find("options");
  if (found == object.end() || found->is_null()) return {};
  const RequestJson options = std::move(*found);
  *found = nullptr;
  if (!options.is_object()) return wrong_type("options", "an object", options);
  for (const auto& [name, value] : options.items()) {
    if (value.is_null() || contains(kLoadingOptions, name)) continue;
    if (!contains(kAnswerOptions, name)) {
      return bad_request("options", fmt::format("'options': '{}' is not supported", name),
                         "unsupported_parameter");
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
