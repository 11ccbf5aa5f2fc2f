// The fields that completions and chat share: the model, how to sample, when to stop, how to
// answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "answer/answer_parser.h"
#include "model/model_config.h"
#include "sampling/sampling_params.h"
#include "server/base/api_error.h"
#include "server/base/request_json.h"
#include "server/fields/field_reader.h"
#include "server/fields/grammar_fields.h"
#include "server/fields/token_rule_fields.h"
#include "serving/thought_budget.h"

namespace pagoda {

inline constexpr int kMaxStopStrings = 64;
inline constexpr int kMaxStopChars = 1024;  // of one stop string
inline constexpr int kMaxStopBytes = 4096;  // of all stop strings together
// Each stop token is compared with every generated token, so they are few. Templates and model
// cards use a handful.
inline constexpr int kMaxStopTokens = 128;
inline constexpr int kMaxSaltChars = 1024;  // of cache_salt, a field of vLLM's
// The most characters of one text in a request. No body holds more.
inline constexpr std::size_t kMaxTextChars = 16 << 20;

struct StreamOptions {
  bool include_usage = false;           // a last chunk holds the usage
  bool continuous_usage_stats = false;  // every chunk holds the usage so far
};

// The fields as they were sent. to_sampling_params() fills in what is absent.
struct GenerationFields {
  std::string model;
  SamplingParams sampling;  // the sampling fields that are not in `asked`
  PartialSampling asked;
  TokenRuleFields token_rules;
  std::optional<std::int64_t> seed;
  std::optional<int> max_tokens;
  std::optional<int> max_completion_tokens;  // takes precedence over max_tokens
  std::optional<int> n_predict;              // llama.cpp's max_tokens
  bool is_unbounded = false;                 // max_tokens was -1, and is absent now
  std::vector<std::string> stop;
  bool include_stop_str_in_output = false;
  bool skip_special_tokens = true;
  std::optional<int> prompt_logprobs;
  int priority = 0;
  std::string cache_salt;
  std::string client;  // HttpRequest::client, which is no field of the body
  GrammarFields grammar;
  // Set by chats, whose answers may hold thoughts.
  std::optional<ThoughtBudgetOptions> thought_budget;
  std::optional<int> best_of;  // OpenAI's: the answers that the best n are chosen from
  // Set by chats whose answers must be calls: how the answers are read.
  std::optional<AnswerParserOptions> only_calls;
  bool echo = false;
  bool stream = false;
  std::optional<StreamOptions> stream_options;
  bool return_token_ids = false;
  bool return_tokens_as_token_ids = false;
};

// Returns the memory, in bytes, of those fields that may be long.
std::int64_t num_bytes(const GenerationFields& fields);

// Returns a field that requests of several endpoints have.
Field model_field(std::string& model);
Field stop_field(std::vector<std::string>& stop);
Field priority_field(int& priority);
Field cache_salt_field(std::string& cache_salt);

// Returns the fields, which point into `fields`: it must outlive the result. `fewest_tokens` is the
// smallest max_tokens that the endpoint accepts.
std::vector<Field> generation_field_table(GenerationFields& fields, int fewest_tokens);
// Returns the fields that other APIs have under the same names: the model, whether to stream, how
// to sample (except the number of answers), priority and cache.
std::vector<Field> shared_field_table(GenerationFields& fields);

// Reads a body by a table that includes the fields of `fields`. Refuses fields that contradict each
// other, and merges the fields of the answer's length into max_tokens.
std::optional<ApiError> read_generation_body(const std::string& body,
                                             const std::vector<Field>& table,
                                             GenerationFields& fields,
                                             std::vector<std::string>& unknown_names);

// Does the same with an object that parse_json_body() returned.
std::optional<ApiError> read_generation_fields(RequestJson body, const std::vector<Field>& table,
                                               GenerationFields& fields,
                                               std::vector<std::string>& unknown_names);

// Reads the strings that end an answer: one, or a list. Errors name the field `name`.
std::optional<ApiError> read_stop(std::string_view name, const RequestJson& value,
                                  std::vector<std::string>& stop);
// Returns the JSON Schema of a list of stop strings.
std::string_view stop_list_schema();

// Returns the JSON Schema of a table with these fields. It includes Ollama's `options`, and the
// combinations that read_generation_body() refuses.
nlohmann::json generation_schema(const std::vector<Field>& table);

// Makes the engine's parameters. `logprobs` and `max_tokens` have been resolved by the endpoint. A
// value that the request leaves open is the checkpoint's default, or else vLLM's.
SamplingParams to_sampling_params(const GenerationFields& fields, const PartialSampling& defaults,
                                  std::optional<int> logprobs, int max_tokens);

}  // namespace pagoda
