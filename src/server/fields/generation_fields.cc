#include "server/fields/generation_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <type_traits>

#include "core/json.h"
#include "sampling/sampling_fields.h"
#include "server/base/json_body.h"
#include "server/base/request_json.h"
#include "server/fields/grammar_field_schemas.h"
#include "server/fields/known_fields.h"

namespace pagoda {
namespace {

constexpr std::string_view kTokensSchema =
    R"({"anyOf": [{"enum": [-1, -2]},
                  {"type": "integer", "minimum": 1, "maximum": 9223372036854775807}]})";
constexpr std::string_view kTokensOrNoneSchema =
    R"({"type": "integer", "minimum": -2, "maximum": 9223372036854775807})";

std::string_view stop_schema() {
  static const std::string schema =
      fmt::format(R"({{"anyOf": [{{"type": "string", "minLength": 1, "maxLength": {}}}, {}]}})",
                  kMaxStopChars, stop_list_schema());
  return schema;
}

// Reads the most tokens of an answer: from `fewest` on, or -1 or -2 for no bound.
std::optional<ApiError> read_most_tokens(std::string_view name, const RequestJson& value,
                                         int fewest, std::optional<int>& most) {
  if (!value.is_number()) return wrong_type(name, "an integer", value);
  const Field field = {.name = name, .range = {.saturates = true}, .size = {.max_items = 1}};
  std::vector<int> numbers;
  if (auto error = read_ints(field, RequestJson::array({value}), numbers)) return error;
  const int number = numbers.front();
  if (number >= fewest || number == -1 || number == -2) {
    most = number;
    return {};
  }
  return bad_request(
      std::string(name),
      fmt::format("'{}': expected at least {}, or -1 for no bound, got {}", name, fewest, number),
      "out_of_range");
}

Field most_tokens_field(std::string_view name, std::optional<int>& most, int fewest) {
  const auto read = [&most, fewest](std::string_view sent, const RequestJson& value) {
    return read_most_tokens(sent, value, fewest, most);
  };
  return {.name = name,
          .target = CustomField{read, fewest == 0 ? kTokensOrNoneSchema : kTokensSchema}};
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

constexpr std::string_view kStreamOptionsSchema =
    R"({"type": "object", "properties": {"include_usage": {"type": ["boolean", "null"]},
        "continuous_usage_stats": {"type": ["boolean", "null"]},
        "include_obfuscation": {"description": "Accepted; changes nothing."}}})";

// Adds the fields that sampling/sampling_fields.h lists.
struct SamplingFieldAdder {
  std::vector<Field>& table;
  GenerationFields& fields;

  template <typename T>
  void operator()(const SamplingField<T>& row) {
    Field field = {.name = row.name, .description = row.help, .from = row.from};
    field.range = {.minimum = row.least,
                   .exclusive_minimum = row.is_above_least,
                   .maximum = row.most,
                   .values = row.values};
    if (row.alias != nullptr) field.aliases = {row.alias};
    if constexpr (std::is_same_v<T, std::vector<int>>) {
      field.target = &(fields.sampling.*row.member);
      field.size = {.max_items = kMaxStopTokens};
      field.format = kTokenIdFormat;
    } else if (row.partial == nullptr) {
      field.target = &(fields.sampling.*row.member);
    } else if constexpr (!std::is_same_v<T, bool>) {
      field.target = &(fields.asked.*row.partial);
    }
    table.push_back(std::move(field));
  }
};

void add_sampling(std::vector<Field>& table, GenerationFields& f) {
  for_each_sampling_field(SamplingFieldAdder{table, f});
  table.push_back({.name = "seed",
                   .target = &f.seed,
                   .description = "The same seed draws the same answer; -1 draws one.",
                   .aliases = {"sampling_seed"}});
}

void add_stopping(std::vector<Field>& table, GenerationFields& f) {
  const std::vector<Field> stopping = {
      stop_field(f.stop),
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
      model_field(f.model),
      {.name = "stream", .target = &f.stream, .description = "Answers as server-sent events."},
      {.name = "stream_options",
       .target = CustomField{[&f](std::string_view, const RequestJson& value) {
                               return read_stream_options(value, f.stream_options);
                             },
                             kStreamOptionsSchema}},
      {.name = "echo",
       .target = &f.echo,
       .description = "Puts the prompt (in chat: the last message) before the answer."},
      {.name = "best_of",
       .target = &f.best_of,
       .range = {.minimum = 1},
       .description = "Answers to choose from: as many as n, or 1. The schema takes 1 alone.",
       .from = "OpenAI"},
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
      priority_field(f.priority),
      cache_salt_field(f.cache_salt),
  };
  table.insert(table.end(), answering.begin(), answering.end());
}

void add_lengths(std::vector<Field>& table, GenerationFields& f, int fewest_tokens) {
  Field max_tokens = most_tokens_field("max_tokens", f.max_tokens, fewest_tokens);
  max_tokens.description =
      "The most tokens of the answer, which ends with the context in any case; -1 is no bound. "
      "Where it is left out, 16 for a completion and no bound for a chat; 0 only with echo.";
  max_tokens.aliases = {"max_new_tokens"};
  table.push_back(std::move(max_tokens));
  Field newer = most_tokens_field("max_completion_tokens", f.max_completion_tokens, fewest_tokens);
  newer.description = "The newer name of max_tokens; goes before it.";
  table.push_back(std::move(newer));
  Field n_predict = most_tokens_field("n_predict", f.n_predict, 1);
  n_predict.description = "max_tokens.";
  n_predict.from = "llama.cpp";
  n_predict.aliases = {"num_predict"};
  table.push_back(std::move(n_predict));
}

// Merges the fields of the answer's length into max_tokens, and refuses contradicting fields.
std::optional<ApiError> resolve_together(GenerationFields& fields) {
  if (fields.stream_options && !fields.stream) {
    return bad_request("stream_options", "'stream_options' needs 'stream' to be true");
  }
  if (fields.stream && fields.prompt_logprobs) {
    return bad_request("prompt_logprobs",
                       "'prompt_logprobs' is not available where 'stream' is true");
  }
  const int n = fields.sampling.n;
  if (const int best_of = fields.best_of.value_or(1); best_of != 1 && best_of != n) {
    return bad_request("best_of",
                       fmt::format("'best_of': expected as many as 'n', {}, got {}", n, best_of),
                       "unsupported_parameter");
  }
  if (fields.max_completion_tokens) fields.max_tokens = fields.max_completion_tokens;
  if (fields.n_predict && fields.max_tokens && fields.max_tokens != fields.n_predict) {
    return bad_request("n_predict",
                       "'max_tokens' and 'n_predict' mean the same, but their values differ");
  }
  if (fields.n_predict.value_or(0) != 0) fields.max_tokens = fields.n_predict;
  fields.is_unbounded = fields.max_tokens.value_or(0) < 0;
  if (fields.is_unbounded) fields.max_tokens.reset();
  return {};
}

}  // namespace

Field model_field(std::string& model) {
  return {.name = "model",
          .target = &model,
          .size = {.max_chars = kMaxTextChars},
          .format = kModelFormat,
          .description = "May be left out."};
}

Field stop_field(std::vector<std::string>& stop) {
  return {.name = "stop",
          .target = CustomField{[&stop](std::string_view name, const RequestJson& value) {
                                  return read_stop(name, value, stop);
                                },
                                stop_schema()},
          .description = "Strings that end the answer, of 4096 bytes together."};
}

Field priority_field(int& priority) {
  return {
      .name = "priority", .target = &priority, .description = "Lower runs first.", .from = "vLLM"};
}

Field cache_salt_field(std::string& cache_salt) {
  return {.name = "cache_salt",
          .target = &cache_salt,
          .size = {.max_chars = kMaxSaltChars},
          .description = "Separates what requests may share of the cache.",
          .from = "vLLM"};
}

std::string_view stop_list_schema() {
  static const std::string schema = fmt::format(
      R"({{"type": "array", "maxItems": {}, "items": {{"type": "string", "minLength": 1, "maxLength": {}}}}})",
      kMaxStopStrings, kMaxStopChars);
  return schema;
}

std::optional<ApiError> read_stop(std::string_view name, const RequestJson& value,
                                  std::vector<std::string>& stop) {
  if (!value.is_string() && !value.is_array())
    return wrong_type(name, "a string or a list of strings", value);
  const Field field = {
      .name = name,
      .size = {.max_chars = kMaxStopChars, .min_chars = 1, .max_items = kMaxStopStrings}};
  const RequestJson list = value.is_array() ? value : RequestJson::array({value});
  if (auto error = read_strings(field, list, stop)) return error;
  std::size_t num_bytes = 0;
  for (const std::string& text : stop) num_bytes += text.size();
  if (num_bytes <= kMaxStopBytes) return {};
  return bad_request(std::string(name),
                     fmt::format("'{}': expected at most {} bytes together, got {}", name,
                                 kMaxStopBytes, num_bytes),
                     "out_of_range");
}

std::vector<Field> generation_field_table(GenerationFields& fields, int fewest_tokens) {
  std::vector<Field> table;
  table.reserve(320);
  add_answering(table, fields);
  add_sampling(table, fields);
  add_token_rule_fields(table, fields.token_rules);
  add_lengths(table, fields, fewest_tokens);
  add_stopping(table, fields);
  std::vector<Field> grammars = grammar_field_table(fields.grammar);
  std::move(grammars.begin(), grammars.end(), std::back_inserter(table));
  return table;
}

std::vector<Field> shared_field_table(GenerationFields& fields) {
  constexpr std::string_view kShared[] = {"model", "stream", "priority", "cache_salt"};
  std::vector<Field> answering;
  add_answering(answering, fields);
  std::vector<Field> table;
  for (Field& field : answering) {
    if (std::find(std::begin(kShared), std::end(kShared), field.name) != std::end(kShared))
      table.push_back(std::move(field));
  }
  add_sampling(table, fields);
  std::erase_if(table, [](const Field& field) { return field.name == "n"; });
  add_token_rule_fields(table, fields.token_rules);
  return table;
}

nlohmann::json generation_schema(const std::vector<Field>& table) {
  nlohmann::json schema = fields_schema(table);
  describe_options(schema, table);
  add_rule(schema,
           parse_json(
               R"({"anyOf": [{"properties": {"stream": {"const": true}}, "required": ["stream"]},
                         {"properties": {"stream_options": {"type": "null"}}}]})"));
  add_rule(schema, parse_json(R"({"anyOf": [{"properties": {"stream": {"enum": [false, null]}}},
                                 {"properties": {"prompt_logprobs": {"type": "null"}}}]})"));
  add_rule(schema, parse_json(R"({"anyOf": [{"properties": {"max_tokens": {"type": "null"},
          "max_new_tokens": {"type": "null"}, "max_completion_tokens": {"type": "null"}}},
      {"properties": {"n_predict": {"type": "null"}, "num_predict": {"type": "null"}}}]})"));
  add_rule(schema, parse_json(R"({"properties": {"best_of": {"enum": [1, null]}}})"));
  describe_grammars_together(schema, nullptr);
  return schema;
}

std::optional<ApiError> read_generation_body(const std::string& body,
                                             const std::vector<Field>& table,
                                             GenerationFields& fields,
                                             std::vector<std::string>& unknown_names) {
  auto parsed = parse_json_body(body);
  if (!parsed.ok()) return std::move(parsed).error();
  return read_generation_fields(*std::move(parsed), table, fields, unknown_names);
}

std::optional<ApiError> read_generation_fields(RequestJson body, const std::vector<Field>& table,
                                               GenerationFields& fields,
                                               std::vector<std::string>& unknown_names) {
  if (auto error = lift_options(body, unknown_names)) return error;
  if (auto error = read_fields(body, table, unknown_names)) return error;
  return resolve_together(fields);
}

std::int64_t num_bytes(const GenerationFields& fields) {
  const TokenRuleFields& rules = fields.token_rules;
  std::size_t num_bytes =
      rules.logit_bias.size() * sizeof(LogitBias) + rules.bad_words.size() * sizeof(std::string);
  for (const std::string& word : rules.bad_words) num_bytes += word.size();
  if (rules.allowed_token_ids) num_bytes += rules.allowed_token_ids->size() * sizeof(int);
  if (const auto& grammar = fields.grammar.grammar) num_bytes += grammar->spec.text.size();
  if (const auto& white_space = fields.grammar.white_space)
    num_bytes += white_space->pattern.size();
  return static_cast<std::int64_t>(num_bytes);
}

SamplingParams to_sampling_params(const GenerationFields& fields, const PartialSampling& defaults,
                                  std::optional<int> logprobs, int max_tokens) {
  SamplingParams params = fields.sampling;
  resolve_sampling(fields.asked, defaults, params);
  params.top_k = std::max(0, params.top_k);
  // A seed of -1 asks for a random one, as in vLLM.
  if (fields.seed && *fields.seed != -1) params.seed = static_cast<std::uint64_t>(*fields.seed);
  params.max_tokens = max_tokens;
  params.min_tokens = std::min(params.min_tokens, max_tokens);
  params.logprobs = logprobs;
  params.prompt_logprobs = fields.prompt_logprobs;
  return params;
}

}  // namespace pagoda
