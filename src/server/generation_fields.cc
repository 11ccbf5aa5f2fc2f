#include "server/generation_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "server/request_json.h"

namespace pagoda {
namespace {

constexpr double kMaxInt = 2147483647.0;

std::optional<ApiError> read_stop(const RequestJson& value, std::vector<std::string>& stop) {
  stop.clear();
  std::size_t num_bytes = 0;
  const RequestJson list = value.is_array() ? value : RequestJson::array({value});
  for (const RequestJson& item : list) {
    if (!item.is_string()) return wrong_type("stop", "a string or a list of strings", item);
    stop.push_back(item.get<std::string>());
    if (stop.back().empty()) return bad_request("stop", "'stop': a stop string must not be empty");
    num_bytes += stop.back().size();
  }
  if (stop.size() <= kMaxStopStrings && num_bytes <= kMaxStopBytes) return {};
  return bad_request(
      "stop",
      fmt::format("'stop': expected at most {} strings of {} bytes together, got {} of {}",
                  kMaxStopStrings, kMaxStopBytes, stop.size(), num_bytes),
      "out_of_range");
}

std::optional<ApiError> read_mirostat(const RequestJson& value, std::optional<int>& mirostat) {
  if (!value.is_number()) return wrong_type("mirostat", "0 or 2", value);
  if (value != 0 && value != 2) {
    return bad_request("mirostat",
                       fmt::format("'mirostat': expected 0 (off) or 2, got {}", value.dump()),
                       "out_of_range");
  }
  mirostat = value == 2 ? 2 : 0;
  return {};
}

std::optional<ApiError> read_stream_options(const RequestJson& value,
                                            std::optional<StreamOptions>& options) {
  if (!value.is_object()) return wrong_type("stream_options", "an object", value);
  options.emplace();
  std::vector<std::string> unknown_names;
  const std::vector<Field> table = {
      {.name = "include_usage", .target = &options->include_usage},
      {.name = "continuous_usage_stats", .target = &options->continuous_usage_stats},
      {.name = "include_obfuscation", .target = IgnoredField{}}};
  return read_fields(value, table, unknown_names);
}

constexpr std::string_view kStopSchema =
    R"({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})";
constexpr std::string_view kMirostatSchema = R"({"enum": [0, 2, null], "default": 0})";
constexpr std::string_view kStreamOptionsSchema =
    R"({"type": ["object", "null"], "properties": {"include_usage": {"type": "boolean", "default": false},
        "continuous_usage_stats": {"type": "boolean", "default": false}}})";

void add_sampling(std::vector<Field>& table, GenerationFields& f) {
  const std::vector<Field> sampling = {
      {.name = "temperature",
       .target = &f.temperature,
       .range = {.minimum = 0},
       .description = "0 is greedy."},
      {.name = "top_p",
       .target = &f.top_p,
       .range = {.minimum = 0, .exclusive_minimum = true, .maximum = 1},
       .description = "Keeps the likeliest tokens that together reach this share; 1 is off."},
      {.name = "top_k",
       .target = &f.top_k,
       .range = {.minimum = -1, .maximum = kMaxInt},
       .description = "Keeps that many of the likeliest tokens; 0 or -1 is off."},
      {.name = "min_p",
       .target = &f.min_p,
       .range = {.minimum = 0, .maximum = 1},
       .description = "Keeps tokens at least this likely against the likeliest; 0 is off."},
      {.name = "repetition_penalty",
       .target = &f.repetition_penalty,
       .range = {.minimum = 0, .exclusive_minimum = true},
       .description = "Divides (or multiplies) the logits of tokens seen; 1 is off."},
      {.name = "presence_penalty",
       .target = &f.presence_penalty,
       .range = {.minimum = -2, .maximum = 2}},
      {.name = "frequency_penalty",
       .target = &f.frequency_penalty,
       .range = {.minimum = -2, .maximum = 2}},
      {.name = "seed", .target = &f.seed, .description = "The same seed draws the same answer."},
      {.name = "n",
       .target = &f.n,
       .range = {.minimum = 1, .maximum = kMaxSamples},
       .description = "Answers to each prompt."},
  };
  table.insert(table.end(), sampling.begin(), sampling.end());
}

// llama.cpp's, where vLLM has none.
void add_more_sampling(std::vector<Field>& table, GenerationFields& f) {
  const std::vector<Field> sampling = {
      {.name = "dynatemp_range",
       .target = &f.dynatemp_range,
       .range = {.minimum = 0, .maximum = kMaxDynatemp},
       .description = "Lets the temperature vary that much either way, with the entropy."},
      {.name = "dynatemp_exponent",
       .target = &f.dynatemp_exponent,
       .range = {.minimum = 0, .maximum = kMaxDynatemp}},
      {.name = "typical_p",
       .target = &f.typical_p,
       .range = {.minimum = 0, .exclusive_minimum = true, .maximum = 1},
       .description = "Keeps the tokens nearest to the expected surprise; 1 is off."},
      {.name = "xtc_probability",
       .target = &f.xtc_probability,
       .range = {.minimum = 0, .maximum = 1},
       .description = "How often the likeliest choices are excluded; 0 is off."},
      {.name = "xtc_threshold",
       .target = &f.xtc_threshold,
       .range = {.minimum = 0, .maximum = 1},
       .description = "Of tokens at least this likely all but the least likely are excluded."},
      {.name = "mirostat",
       .target =
           CustomField{[&f](const RequestJson& value) { return read_mirostat(value, f.mirostat); },
                       kMirostatSchema},
       .description = "2 holds the surprise at mirostat_tau, instead of all other filters."},
      {.name = "mirostat_tau",
       .target = &f.mirostat_tau,
       .range = {.minimum = 0, .maximum = kMaxMirostatTau},
       .description = "In bits."},
      {.name = "mirostat_eta", .target = &f.mirostat_eta, .range = {.minimum = 0, .maximum = 1}},
  };
  table.insert(table.end(), sampling.begin(), sampling.end());
}

void add_dry(std::vector<Field>& table, GenerationFields& f) {
  const std::vector<Field> dry = {
      {.name = "dry_multiplier",
       .target = &f.dry_multiplier,
       .range = {.minimum = 0, .maximum = kMaxDryMultiplier},
       .description = "Penalises what would go on with a repetition; 0 is off."},
      {.name = "dry_base",
       .target = &f.dry_base,
       .range = {.minimum = 1, .maximum = kMaxDryBase},
       .description = "By which the penalty grows with every token repeated."},
      {.name = "dry_allowed_length",
       .target = &f.dry_allowed_length,
       .range = {.minimum = 1, .maximum = kMaxInt},
       .description = "Repetitions shorter than this are not penalised."},
      {.name = "dry_penalty_last_n",
       .target = &f.dry_penalty_last_n,
       .range = {.minimum = -1, .maximum = kMaxInt},
       .description = "How many tokens it looks back over; -1 is all, 0 is off."},
  };
  table.insert(table.end(), dry.begin(), dry.end());
}

void add_stopping(std::vector<Field>& table, GenerationFields& f) {
  const std::vector<Field> stopping = {
      {.name = "min_tokens",
       .target = &f.min_tokens,
       .range = {.minimum = 0, .maximum = kMaxInt},
       .description = "Before which nothing ends the answer."},
      {.name = "stop",
       .target = CustomField{[&f](const RequestJson& value) { return read_stop(value, f.stop); },
                             kStopSchema},
       .description = "Strings that end the answer."},
      {.name = "stop_token_ids", .target = &f.stop_token_ids, .range = {.minimum = 0}},
      {.name = "ignore_eos",
       .target = &f.ignore_eos,
       .description = "Goes on past the model's end-of-sequence tokens."},
      {.name = "include_stop_str_in_output", .target = &f.include_stop_str_in_output},
      {.name = "skip_special_tokens",
       .target = &f.skip_special_tokens,
       .description = "Leaves them out of the text."},
  };
  table.insert(table.end(), stopping.begin(), stopping.end());
}

void add_answering(std::vector<Field>& table, GenerationFields& f) {
  const std::vector<Field> answering = {
      {.name = "model", .target = &f.model, .description = "May be left out."},
      {.name = "stream", .target = &f.stream, .description = "Answers as server-sent events."},
      {.name = "stream_options",
       .target = CustomField{[&f](const RequestJson& value) {
                               return read_stream_options(value, f.stream_options);
                             },
                             kStreamOptionsSchema}},
      {.name = "echo",
       .target = &f.echo,
       .description = "Puts the prompt (in chat: the last message) before the answer."},
      {.name = "prompt_logprobs",
       .target = &f.prompt_logprobs,
       .range = {.minimum = 0, .maximum = kMaxLogprobs},
       .description = "Log-probabilities of the prompt's tokens, with as many of the likeliest at "
                      "each place."},
      {.name = "return_token_ids", .target = &f.return_token_ids},
      {.name = "return_tokens_as_token_ids",
       .target = &f.return_tokens_as_token_ids,
       .description = "Writes tokens in log-probabilities as token_id:N."},
      {.name = "priority",
       .target = &f.priority,
       .range = {.minimum = -kMaxInt, .maximum = kMaxInt},
       .description = "Lower runs first."},
      {.name = "cache_salt",
       .target = &f.cache_salt,
       .description = "Separates what requests may share of the cache."},
  };
  table.insert(table.end(), answering.begin(), answering.end());
}

// What would change the answer and is not here, with the values that other servers have as
// defaults; and what never would.
void add_others(std::vector<Field>& table) {
  for (const std::string_view name :
       {"use_beam_search", "truncate_prompt_tokens", "logits_processors", "kv_transfer_params",
        "vllm_xargs", "prompt_embeds", "repetition_detection", "lora_path"}) {
    table.push_back({.name = name, .target = RefusedField{}});
  }
  table.push_back({.name = "length_penalty", .target = RefusedField{"1"}});
  table.push_back({.name = "best_of", .target = RefusedField{"1"}});
  for (const std::string_view name :
       {"user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key",
        "prompt_cache_retention", "request_id", "prediction", "spaces_between_special_tokens"}) {
    table.push_back({.name = name, .target = IgnoredField{}});
  }
}

}  // namespace

std::vector<Field> generation_field_table(GenerationFields& fields) {
  std::vector<Field> table;
  table.reserve(96);
  add_answering(table, fields);
  add_sampling(table, fields);
  add_more_sampling(table, fields);
  add_dry(table, fields);
  add_token_rule_fields(table, fields.token_rules);
  add_stopping(table, fields);
  const std::vector<Field> grammar = grammar_field_table(fields.grammar);
  table.insert(table.end(), grammar.begin(), grammar.end());
  add_others(table);
  return table;
}

std::optional<ApiError> check_together(const GenerationFields& fields) {
  if (fields.stream_options && !fields.stream) {
    return bad_request("stream_options", "'stream_options' needs 'stream' to be true");
  }
  if (fields.stream && fields.prompt_logprobs) {
    return bad_request("prompt_logprobs",
                       "'prompt_logprobs' is not available where 'stream' is true");
  }
  if (fields.max_tokens && fields.min_tokens > *fields.max_tokens) {
    return bad_request("min_tokens",
                       fmt::format("'min_tokens': expected at most max_tokens, {}, got {}",
                                   *fields.max_tokens, fields.min_tokens));
  }
  return {};
}

SamplingParams to_sampling_params(const GenerationFields& fields,
                                  const GenerationDefaults& defaults, std::optional<int> logprobs,
                                  int max_tokens) {
  SamplingParams params;
  const auto settle = [](const auto& asked, const auto& checkpoint, auto& param) {
    param = asked.value_or(checkpoint.value_or(param));
  };
  settle(fields.temperature, defaults.temperature, params.temperature);
  settle(fields.top_p, defaults.top_p, params.top_p);
  settle(fields.min_p, defaults.min_p, params.min_p);
  settle(fields.top_k, defaults.top_k, params.top_k);
  params.top_k = std::max(0, params.top_k);
  settle(fields.repetition_penalty, defaults.repetition_penalty, params.repetition_penalty);
  params.presence_penalty = fields.presence_penalty;
  params.frequency_penalty = fields.frequency_penalty;
  params.dynatemp_range = fields.dynatemp_range;
  params.dynatemp_exponent = fields.dynatemp_exponent;
  params.typical_p = fields.typical_p;
  settle(fields.xtc_probability, defaults.xtc_probability, params.xtc_probability);
  settle(fields.xtc_threshold, defaults.xtc_threshold, params.xtc_threshold);
  settle(fields.mirostat, defaults.mirostat, params.mirostat);
  settle(fields.mirostat_tau, defaults.mirostat_tau, params.mirostat_tau);
  settle(fields.mirostat_eta, defaults.mirostat_eta, params.mirostat_eta);
  params.dry_multiplier = fields.dry_multiplier;
  params.dry_base = fields.dry_base;
  params.dry_allowed_length = fields.dry_allowed_length;
  params.dry_penalty_last_n = fields.dry_penalty_last_n;
  // -1 draws one, as in vLLM.
  if (fields.seed && *fields.seed != -1) params.seed = static_cast<std::uint64_t>(*fields.seed);
  params.n = fields.n;
  params.max_tokens = max_tokens;
  params.min_tokens = std::min(fields.min_tokens, max_tokens);
  params.ignore_eos = fields.ignore_eos;
  params.stop_token_ids = fields.stop_token_ids;
  params.logprobs = logprobs;
  params.prompt_logprobs = fields.prompt_logprobs;
  return params;
}

}  // namespace pagoda
