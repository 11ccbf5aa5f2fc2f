// The fields that completions and chat share: which model, how to sample, when to stop, how to
// answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/model_config.h"
#include "sampling/sampling_params.h"
#include "server/api_error.h"
#include "server/field_reader.h"
#include "server/grammar_fields.h"
#include "server/token_rule_fields.h"

namespace pagoda {

inline constexpr int kMaxStopStrings = 64;
inline constexpr int kMaxStopBytes = 4096;  // of all stop strings together

struct StreamOptions {
  bool include_usage = false;           // a last chunk with the usage
  bool continuous_usage_stats = false;  // the usage so far in every chunk
};

// As sent; absent values are settled by to_sampling_params().
struct GenerationFields {
  std::string model;
  std::optional<float> temperature;
  std::optional<float> top_p;
  std::optional<float> min_p;
  std::optional<int> top_k;
  std::optional<float> repetition_penalty;
  float presence_penalty = 0;
  float frequency_penalty = 0;
  float dynatemp_range = 0;
  float dynatemp_exponent = 1;
  float typical_p = 1;
  std::optional<float> xtc_probability;
  std::optional<float> xtc_threshold;
  std::optional<int> mirostat;
  std::optional<float> mirostat_tau;
  std::optional<float> mirostat_eta;
  float dry_multiplier = 0;
  float dry_base = 1.75f;
  int dry_allowed_length = 2;
  int dry_penalty_last_n = -1;
  TokenRuleFields token_rules;
  std::optional<std::int64_t> seed;
  int n = 1;
  std::optional<int> max_tokens;
  int min_tokens = 0;
  std::vector<std::string> stop;
  std::vector<int> stop_token_ids;
  bool ignore_eos = false;
  bool include_stop_str_in_output = false;
  bool skip_special_tokens = true;
  std::optional<int> prompt_logprobs;
  int priority = 0;
  std::string cache_salt;
  GrammarFields grammar;
  bool echo = false;
  bool stream = false;
  std::optional<StreamOptions> stream_options;
  bool return_token_ids = false;
  bool return_tokens_as_token_ids = false;
};

// Pointers into `fields`, which must outlive the result.
std::vector<Field> generation_field_table(GenerationFields& fields);

// What no single field shows: fields that contradict one another.
std::optional<ApiError> check_together(const GenerationFields& fields);

// `logprobs` and `max_tokens` as the endpoint settled them. What the request leaves open is the
// checkpoint's default, and where it has none, vLLM's.
SamplingParams to_sampling_params(const GenerationFields& fields,
                                  const GenerationDefaults& defaults, std::optional<int> logprobs,
                                  int max_tokens);

}  // namespace pagoda
