#include "server/generation_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "server/grammar_field_schemas.h"
#include "server/request_json.h"

namespace pagoda {
namespace {

std::optional<ApiError> read_stop(const RequestJson& value, std::vector<std::string>& stop) {
  if (!value.is_string() && !value.is_array())
    return wrong_type("stop", "a string or a list of strings", value);
  const Field field = {
      .name = "stop",
      .size = {.max_chars = kMaxStopChars, .min_chars = 1, .max_items = kMaxStopStrings}};
  const RequestJson list = value.is_array() ? value : RequestJson::array({value});
  if (auto error = read_strings(field, list, stop)) return error;
  std::size_t num_bytes = 0;
  for (const std::string& text : stop) num_bytes += text.size();
  if (num_bytes <= kMaxStopBytes) return {};
  return bad_request(
      "stop",
      fmt::format("'stop': expected at most {} bytes together, got {}", kMaxStopBytes, num_bytes),
      "out_of_range");
}

std::string_view stop_schema() {
  static const std::string schema = fmt::format(
      R"({{"anyOf": [{{"type": "string", "minLength": 1, "maxLength": {0}}},
           {{"type": "array", "maxItems": {1}, "items": {{"type": "string", "minLength": 1, "maxLength": {0}}}}}]}})",
      kMaxStopChars, kMaxStopStrings);
  return schema;
}

std::optional<ApiError> read_n_predict(std::string_view name, const RequestJson& value,
                                       std::optional<int>& n_predict) {
  if (!value.is_number()) return wrong_type(name, "an integer", value);
  const Field field = {.name = name, .range = {.minimum = -2}, .size = {.max_items = 1}};
  std::vector<int> numbers;
  if (auto error = read_ints(field, RequestJson::array({value}), numbers)) return error;
  if (numbers.front() != 0) {
    n_predict = numbers.front();
    return {};
  }
  return bad_request(std::string(name),
                     fmt::format("'{}': expected a number of tokens, or -1, got 0", name),
                     "out_of_range");
}

std::optional<ApiError> read_mirostat(const RequestJson& value, std::optional<int>& mirostat) {
  if (!value.is_number()) return wrong_type("mirostat", "0 or 2", value);
  if (value != RequestJson(0) && value != RequestJson(2)) {
    return bad_request("mirostat",
                       fmt::format("'mirostat': expected 0 (off) or 2, got {}", value.dump()),
                       "out_of_range");
  }
  mirostat = value == RequestJson(2) ? 2 : 0;
  return {};
}

std::optional<ApiError> read_stream_options(const RequestJson& value,
                                            std::optional<StreamOptions>& options) {
  if (!value.is_object()) return wrong_type("stream_options", "an object", value);
  options.emplace();
  const std::vector<Field> table = {
      {.name = "include_usage", .target = &options->include_usage},
      {.name = "continuous_usage_stats", .target = &options->continuous_usage_stats},
      {.name = "include_obfuscation", .target = IgnoredField{}}};
  return read_inner_fields(value, table, "stream_options");
}

constexpr std::string_view kMirostatSchema = R"({"enum": [0, 2]})";
constexpr std::string_view kStreamOptionsSchema =
    R"({"type": "object", "properties": {"include_usage": {"type": ["boolean", "null"]},
        "continuous_usage_stats": {"type": ["boolean", "null"]},
        "include_obfuscation": {"description": "Accepted; changes nothing."}}})";
constexpr std::string_view kNumPredictSchema =
    R"({"anyOf": [{"enum": [-1, -2]}, {"type": "integer", "minimum": 1, "maximum": 2147483647,
        "format": "token-count"}]})";

void add_sampling(std::vector<Field>& table, GenerationFields& f) {
  const std::vector<Field> sampling = {
      {.name = "temperature",
       .target = &f.temperature,
       .range = {.minimum = 0, .maximum = kMaxTemperature},
       .description = "0 is greedy."},
      {.name = "top_p",
       .target = &f.top_p,
       .range = {.minimum = 0, .exclusive_minimum = true, .maximum = 1},
       .description = "Keeps the likeliest tokens that together reach this share; 1 is off."},
      {.name = "top_k",
       .target = &f.top_k,
       .range = {.minimum = -1},
       .description = "Keeps that many of the likeliest tokens; 0 or -1 is off.",
       .from = "vLLM"},
      {.name = "min_p",
       .target = &f.min_p,
       .range = {.minimum = 0, .maximum = 1},
       .description = "Keeps tokens at least this likely against the likeliest; 0 is off.",
       .from = "vLLM"},
      {.name = "repetition_penalty",
       .target = &f.repetition_penalty,
       .range = {.minimum = 0, .exclusive_minimum = true, .maximum = kMaxRepetitionPenalty},
       .description = "Divides (or multiplies) the logits of tokens seen; 1 is off.",
       .from = "vLLM",
       .aliases = {"repeat_penalty"}},
      {.name = "presence_penalty",
       .target = &f.presence_penalty,
       .range = {.minimum = -2, .maximum = 2}},
      {.name = "frequency_penalty",
       .target = &f.frequency_penalty,
       .range = {.minimum = -2, .maximum = 2}},
      {.name = "seed",
       .target = &f.seed,
       .description = "The same seed draws the same answer; -1 draws one.",
       .aliases = {"sampling_seed"}},
      {.name = "n",
       .target = &f.n,
       .range = {.minimum = 1, .maximum = kMaxSamples},
       .description = "Answers to each prompt.",
       .aliases = {"n_cmpl"}},
  };
  table.insert(table.end(), sampling.begin(), sampling.end());
}

// llama.cpp's, where vLLM has none.
void add_more_sampling(std::vector<Field>& table, GenerationFields& f) {
  const std::vector<Field> sampling = {
      {.name = "dynatemp_range",
       .target = &f.dynatemp_range,
       .range = {.minimum = 0, .maximum = kMaxDynatemp},
       .description = "Lets the temperature vary that much either way, with the entropy.",
       .from = "llama.cpp"},
      {.name = "dynatemp_exponent",
       .target = &f.dynatemp_exponent,
       .range = {.minimum = 0, .maximum = kMaxDynatemp},
       .from = "llama.cpp"},
      {.name = "typical_p",
       .target = &f.typical_p,
       .range = {.minimum = 0, .exclusive_minimum = true, .maximum = 1},
       .description = "Keeps the tokens nearest to the expected surprise; 1 is off.",
       .from = "llama.cpp"},
      {.name = "xtc_probability",
       .target = &f.xtc_probability,
       .range = {.minimum = 0, .maximum = 1},
       .description = "How often the likeliest choices are excluded; 0 is off.",
       .from = "llama.cpp"},
      {.name = "xtc_threshold",
       .target = &f.xtc_threshold,
       .range = {.minimum = 0, .maximum = 1},
       .description = "Of tokens at least this likely all but the least likely are excluded.",
       .from = "llama.cpp"},
      {.name = "mirostat",
       .target = CustomField{[&f](std::string_view, const RequestJson& value) {
                               return read_mirostat(value, f.mirostat);
                             },
                             kMirostatSchema},
       .description = "2 holds the surprise at mirostat_tau, instead of all other filters.",
       .from = "llama.cpp"},
      {.name = "mirostat_tau",
       .target = &f.mirostat_tau,
       .range = {.minimum = 0, .maximum = kMaxMirostatTau},
       .description = "In bits.",
       .from = "llama.cpp"},
      {.name = "mirostat_eta",
       .target = &f.mirostat_eta,
       .range = {.minimum = 0, .maximum = 1},
       .from = "llama.cpp"},
  };
  table.insert(table.end(), sampling.begin(), sampling.end());
}

void add_dry(std::vector<Field>& table, GenerationFields& f) {
  const std::vector<Field> dry = {
      {.name = "dry_multiplier",
       .target = &f.dry_multiplier,
       .range = {.minimum = 0, .maximum = kMaxDryMultiplier},
       .description = "Penalises what would go on with a repetition; 0 is off.",
       .from = "llama.cpp"},
      {.name = "dry_base",
       .target = &f.dry_base,
       .range = {.minimum = 1, .maximum = kMaxDryBase},
       .description = "By which the penalty grows with every token repeated.",
       .from = "llama.cpp"},
      {.name = "dry_allowed_length",
       .target = &f.dry_allowed_length,
       .range = {.minimum = 1},
       .description = "Repetitions shorter than this are not penalised.",
       .from = "llama.cpp"},
      {.name = "dry_penalty_last_n",
       .target = &f.dry_penalty_last_n,
       .range = {.minimum = -1},
       .description = "How many tokens it looks back over; -1 is all, 0 is off.",
       .from = "llama.cpp"},
  };
  table.insert(table.end(), dry.begin(), dry.end());
}

void add_stopping(std::vector<Field>& table, GenerationFields& f) {
  const std::vector<Field> stopping = {
      {.name = "min_tokens",
       .target = &f.min_tokens,
       .range = {.minimum = 0},
       .description = "Before which nothing ends the answer, but max_tokens.",
       .from = "vLLM",
       .aliases = {"min_new_tokens"}},
      {.name = "stop",
       .target = CustomField{[&f](std::string_view, const RequestJson& value) {
                               return read_stop(value, f.stop);
                             },
                             stop_schema()},
       .description = "Strings that end the answer, of 4096 bytes together."},
      {.name = "stop_token_ids",
       .target = &f.stop_token_ids,
       .range = {.minimum = 0},
       .size = {.max_items = kMaxStopTokens},
       .format = kTokenIdFormat,
       .from = "vLLM"},
      {.name = "ignore_eos",
       .target = &f.ignore_eos,
       .description = "Goes on past the model's end-of-sequence tokens.",
       .from = "vLLM"},
      {.name = "include_stop_str_in_output",
       .target = &f.include_stop_str_in_output,
       .from = "vLLM"},
      {.name = "skip_special_tokens",
       .target = &f.skip_special_tokens,
       .description = "Leaves them out of the text.",
       .from = "vLLM"},
  };
  table.insert(table.end(), stopping.begin(), stopping.end());
}

void add_answering(std::vector<Field>& table, GenerationFields& f) {
  const std::vector<Field> answering = {
      {.name = "model",
       .target = &f.model,
       .size = {.max_chars = kMaxTextChars},
       .format = kModelFormat,
       .description = "May be left out."},
      {.name = "stream", .target = &f.stream, .description = "Answers as server-sent events."},
      {.name = "stream_options",
       .target = CustomField{[&f](std::string_view, const RequestJson& value) {
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
                      "each place.",
       .from = "vLLM"},
      {.name = "return_token_ids", .target = &f.return_token_ids, .from = "vLLM"},
      {.name = "return_tokens_as_token_ids",
       .target = &f.return_tokens_as_token_ids,
       .description = "Writes tokens in log-probabilities as token_id:N.",
       .from = "vLLM"},
      {.name = "priority",
       .target = &f.priority,
       .description = "Lower runs first.",
       .from = "vLLM"},
      {.name = "cache_salt",
       .target = &f.cache_salt,
       .size = {.max_chars = kMaxSaltChars},
       .description = "Separates what requests may share of the cache.",
       .from = "vLLM"},
  };
  table.insert(table.end(), answering.begin(), answering.end());
}

void add_lengths(std::vector<Field>& table, GenerationFields& f, int fewest_tokens) {
  const FieldRange range = {.minimum = static_cast<double>(fewest_tokens)};
  table.push_back({.name = "max_tokens",
                   .target = &f.max_tokens,
                   .range = range,
                   .format = kTokenCountFormat,
                   .description =
                       "Of the answer. Where it is left out, 16 for a completion and the rest of "
                       "the context for a chat; 0 only with echo.",
                   .aliases = {"max_new_tokens"}});
  table.push_back({.name = "max_completion_tokens",
                   .target = &f.max_completion_tokens,
                   .range = range,
                   .format = kTokenCountFormat,
                   .description = "The newer name of max_tokens; goes before it."});
  table.push_back({.name = "n_predict",
                   .target = CustomField{[&f](std::string_view name, const RequestJson& value) {
                                           return read_n_predict(name, value, f.n_predict);
                                         },
                                         kNumPredictSchema},
                   .description = "max_tokens, or -1 for the rest of the context.",
                   .from = "llama.cpp",
                   .aliases = {"num_predict"}});
}

}  // namespace

std::vector<Field> generation_field_table(GenerationFields& fields, int fewest_tokens) {
  std::vector<Field> table;
  table.reserve(320);
  add_answering(table, fields);
  add_sampling(table, fields);
  add_more_sampling(table, fields);
  add_dry(table, fields);
  add_token_rule_fields(table, fields.token_rules);
  add_lengths(table, fields, fewest_tokens);
  add_stopping(table, fields);
  std::vector<Field> grammars = grammar_field_table(fields.grammar);
  std::move(grammars.begin(), grammars.end(), std::back_inserter(table));
  return table;
}

std::optional<ApiError> settle_together(GenerationFields& fields) {
  if (fields.stream_options && !fields.stream) {
    return bad_request("stream_options", "'stream_options' needs 'stream' to be true");
  }
  if (fields.stream && fields.prompt_logprobs) {
    return bad_request("prompt_logprobs",
                       "'prompt_logprobs' is not available where 'stream' is true");
  }
  if (fields.max_completion_tokens) fields.max_tokens = fields.max_completion_tokens;
  if (!fields.n_predict) return {};
  if (fields.max_tokens && fields.max_tokens != fields.n_predict) {
    return bad_request("n_predict",
                       "'max_tokens' and 'n_predict' mean the same, but their values differ");
  }
  if (*fields.n_predict > 0) fields.max_tokens = fields.n_predict;
  return {};
}

void describe_together(nlohmann::json& schema) {
  add_rule(schema,
           nlohmann::json::parse(
               R"({"anyOf": [{"properties": {"stream": {"const": true}}, "required": ["stream"]},
                         {"properties": {"stream_options": {"type": "null"}}}]})"));
  add_rule(schema,
           nlohmann::json::parse(R"({"anyOf": [{"properties": {"stream": {"enum": [false, null]}}},
                                 {"properties": {"prompt_logprobs": {"type": "null"}}}]})"));
  add_rule(schema,
           nlohmann::json::parse(R"({"anyOf": [{"properties": {"max_tokens": {"type": "null"},
          "max_new_tokens": {"type": "null"}, "max_completion_tokens": {"type": "null"}}},
      {"properties": {"n_predict": {"type": "null"}, "num_predict": {"type": "null"}}}]})"));
  describe_grammars_together(schema);
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
