#include "tests/sampling/filter_case.h"

#include <fstream>
#include <limits>
#include <utility>

#include "core/check.h"
#include "core/json.h"
#include "sampling/token_rules.h"
#include "tests/support/source_path.h"

namespace pagoda {
namespace {

using nlohmann::json;

json read_fixture() {
  std::ifstream file(testing::source_path("tests/sampling/filters.json"));
  PAGODA_CHECK(file.good(), "tests/sampling/filters.json is not there");
  return json::parse(file);
}

// Reads a number; null is -inf, since JSON has no infinities.
template <typename T>
T number_of(const json& value) {
  return value.is_null() ? -std::numeric_limits<T>::infinity() : value.get<T>();
}

std::vector<float> logits_of(const json& row) {
  std::vector<float> logits;
  for (const json& value : row) logits.push_back(number_of<float>(value));
  return logits;
}

TokenRules rules_of(const json& fields, int vocab_size) {
  const auto read = [&](const char* name, auto& to) {
    if (fields.contains(name)) fields[name].get_to(to);
  };
  TokenRules rules;
  for (const json& entry : fields.value("logit_bias", json::array()))
    rules.logit_bias.push_back({entry[0].get<int>(), number_of<float>(entry[1])});
  if (fields.contains("allowed_token_ids"))
    rules.allowed_tokens = mask_of(fields["allowed_token_ids"].get<std::vector<int>>(), vocab_size);
  read("bad_words", rules.bad_words);
  read("dry_sequence_breakers", rules.dry_sequence_breakers);
  return rules;
}

SamplingParams params_of(const json& fields, int vocab_size) {
  SamplingParams params;
  const auto read = [&](const char* name, auto& to) {
    if (fields.contains(name)) fields[name].get_to(to);
  };
  read("temperature", params.temperature);
  read("dynatemp_range", params.dynatemp_range);
  read("dynatemp_exponent", params.dynatemp_exponent);
  read("top_k", params.top_k);
  read("top_p", params.top_p);
  read("min_p", params.min_p);
  read("typical_p", params.typical_p);
  read("xtc_probability", params.xtc_probability);
  read("xtc_threshold", params.xtc_threshold);
  read("mirostat", params.mirostat);
  read("mirostat_tau", params.mirostat_tau);
  read("mirostat_eta", params.mirostat_eta);
  read("repetition_penalty", params.repetition_penalty);
  read("presence_penalty", params.presence_penalty);
  read("frequency_penalty", params.frequency_penalty);
  read("dry_multiplier", params.dry_multiplier);
  read("dry_base", params.dry_base);
  read("dry_allowed_length", params.dry_allowed_length);
  read("dry_penalty_last_n", params.dry_penalty_last_n);
  read("min_tokens", params.min_tokens);
  read("stop_token_ids", params.stop_token_ids);
  params.token_rules = std::make_shared<const TokenRules>(rules_of(fields, vocab_size));
  return params;
}

// Returns the kept tokens. Each hexadecimal digit has bits for four tokens, the first in its lowest
// bit.
std::vector<int> kept_of(const std::string& digits) {
  std::vector<int> kept;
  for (int id = 0; id < 4 * static_cast<int>(digits.size()); ++id) {
    if (std::stoi(digits.substr(id / 4, 1), nullptr, 16) >> id % 4 & 1) kept.push_back(id);
  }
  return kept;
}

FilterCase case_of(const json& from, const json& rows) {
  FilterCase result;
  result.row_name = from["row"];
  result.text = result.row_name + " " + from["params"].dump();
  result.logits = logits_of(rows[result.row_name]);
  result.params = params_of(from["params"], result.vocab_size());
  result.changed.assign(result.logits.begin(), result.logits.end());
  if (from.contains("output")) {
    from["prompt"].get_to(result.tokens);
    result.num_prompt_tokens = static_cast<int>(result.tokens.size());
    for (const json& token : from["output"]) result.tokens.push_back(token);
    from["eos"].get_to(result.eos_token_ids);
    for (const json& entry : from["changed"])
      result.changed[entry[0].get<int>()] = number_of<double>(entry[1]);
  }
  from["temperature"].get_to(result.temperature);
  result.kept = kept_of(from["kept"]);
  if (from.contains("probabilities")) from["probabilities"].get_to(result.probabilities);
  from["seed"].get_to(result.seed);
  from["tokens"].get_to(result.drawn);
  result.is_counted = from.value("is_counted", false);
  return result;
}

}  // namespace

RowSampling FilterCase::at(int position) const {
  const int num_output_tokens = static_cast<int>(tokens.size()) - num_prompt_tokens;
  return {.logits = logits,
          .params = &params,
          .bans_stop_tokens = num_output_tokens < params.min_tokens,
          .eos_token_ids = eos_token_ids,
          .tokens = tokens,
          .num_prompt_tokens = num_prompt_tokens,
          .seed = seed,
          .position = position};
}

const std::vector<FilterCase>& filter_cases() {
  static const std::vector<FilterCase> cases = [] {
    const json fixture = read_fixture();
    std::vector<FilterCase> read;
    for (const json& from : fixture["cases"]) read.push_back(case_of(from, fixture["rows"]));
    return read;
  }();
  return cases;
}

std::vector<MirostatRun> read_mirostat_runs() {
  const json fixture = read_fixture();
  std::vector<MirostatRun> runs;
  for (const json& from : fixture["mirostat_runs"]) {
    std::vector<float> logits = logits_of(fixture["rows"][from["row"].get<std::string>()]);
    const auto vocab_size = static_cast<int>(logits.size());
    runs.push_back({.logits = std::move(logits),
                    .params = params_of(from["params"], vocab_size),
                    .seed = from["seed"],
                    .steps = from["steps"]});
  }
  return runs;
}

}  // namespace pagoda
