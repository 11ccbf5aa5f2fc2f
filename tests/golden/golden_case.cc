#include "tests/golden/golden_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "core/json.h"
#include "tests/support/run_to_end.h"

namespace pagoda::golden {

using nlohmann::json;

namespace {

constexpr float kListedFloor = -8;  // listed log-probabilities below it are not compared

// Adds the difference of one listed entry to `closeness`; returns false if the engine's list lacks
// the token.
bool compare_entry(const TokenLogprobs& ours, int token_id, float golden, Closeness& closeness) {
  const auto same = [token_id](const TokenLogprob& entry) { return entry.token_id == token_id; };
  const auto found = std::find_if(ours.top.begin(), ours.top.end(), same);
  const TokenLogprob* entry = found != ours.top.end() ? &*found : nullptr;
  if (entry == nullptr && same(ours.chosen)) entry = &ours.chosen;
  if (entry == nullptr) return false;
  closeness.add(std::abs(static_cast<double>(entry->logprob) - golden));
  return true;
}

// Compares the listed entries of one greedy step. Returns what is wrong.
std::string compare_step(const TokenLogprobs& ours, const GoldenCase& golden, std::size_t step,
                         Closeness& closeness) {
  for (const auto& [token_id, logprob] : golden.top_logprobs[step]) {
    if (logprob > kListedFloor && !compare_entry(ours, token_id, logprob, closeness)) {
      return fmt::format("{} step {}: token {} of log-probability {} is not among ours",
                         golden.name, step, token_id, logprob);
    }
  }
  return {};
}

// Compares greedy decoding up to the first token that may differ. Returns what is wrong.
std::string compare_greedy(Engine& engine, const GoldenCase& golden, float margin_bound) {
  const auto num_steps = static_cast<int>(golden.greedy_ids.size());
  const WholeAnswer answer = run_to_end(
      engine, {.prompt_token_ids = golden.prompt_ids,
               .sampling = {.temperature = 0, .max_tokens = num_steps, .ignore_eos = true}});
  if (!answer.error.ok()) return answer.error.message();
  if (static_cast<int>(answer.token_ids.size()) != num_steps) {
    return fmt::format("{}: expected {} tokens, got {}", golden.name, num_steps,
                       answer.token_ids.size());
  }
  for (int step = 0; step < num_steps; ++step) {
    if (answer.token_ids[step] == golden.greedy_ids[step]) continue;
    if (golden.top1_margin[step] <= margin_bound)
      return {};  // a tie; compare_fed() compares the later steps
    return fmt::format("{} step {}: expected token {} by a margin of {}, got {}", golden.name, step,
                       golden.greedy_ids[step], golden.top1_margin[step], answer.token_ids[step]);
  }
  return {};
}

GoldenCase parse_case(const json& entry, std::size_t index) {
  GoldenCase golden;
  golden.name = fmt::format("case {}", index);
  golden.prompt_ids = entry.at("prompt_ids").get<std::vector<int>>();
  golden.greedy_ids = entry.at("greedy_ids").get<std::vector<int>>();
  golden.top1_margin = entry.at("top1_margin").get<std::vector<float>>();
  for (const json& step : entry.at("top5_logprobs")) {
    golden.top_logprobs.push_back(step.get<std::vector<std::pair<int, float>>>());
  }
  for (const json& value : entry.at("prompt_logprobs")) {
    golden.prompt_logprobs.push_back(value.is_null() ? std::nullopt
                                                     : std::optional(value.get<float>()));
  }
  return golden;
}

}  // namespace

void Closeness::add(double difference) {
  sum += difference;
  largest = std::max(largest, difference);
  ++count;
}

Result<std::vector<GoldenCase>> read_golden_cases(const std::string& path) {
  std::ifstream file(path);
  const json document = json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object()) return data_loss("[golden] {}: no JSON object", path);
  std::vector<GoldenCase> cases;
  for (const json& entry : document.at("cases")) cases.push_back(parse_case(entry, cases.size()));
  return cases;
}

std::string compare_fed(Engine& engine, const GoldenCase& golden, float margin_bound,
                        Closeness& closeness) {
  std::vector<int> fed = golden.prompt_ids;
  fed.insert(fed.end(), golden.greedy_ids.begin(), golden.greedy_ids.end());
  const WholeAnswer answer = run_to_end(
      engine, {.prompt_token_ids = fed,
               .sampling = {.temperature = 0, .max_tokens = 0, .prompt_logprobs = kMaxLogprobs}});
  if (!answer.error.ok()) return answer.error.message();
  if (answer.prompt_logprobs.size() != fed.size()) {
    return fmt::format("{}: expected {} prompt log-probabilities, got {}", golden.name, fed.size(),
                       answer.prompt_logprobs.size());
  }
  for (std::size_t i = 1; i < golden.prompt_ids.size(); ++i) {
    closeness.add(std::abs(static_cast<double>(answer.prompt_logprobs[i]->chosen.logprob) -
                           *golden.prompt_logprobs[i]));
  }
  for (std::size_t step = 0; step < golden.greedy_ids.size(); ++step) {
    const TokenLogprobs& ours = *answer.prompt_logprobs[golden.prompt_ids.size() + step];
    if (std::string wrong = compare_step(ours, golden, step, closeness); !wrong.empty())
      return wrong;
    if (ours.top.front().token_id != golden.greedy_ids[step] &&
        golden.top1_margin[step] > margin_bound) {
      return fmt::format("{} step {}: fed, expected token {} by a margin of {}, got {}",
                         golden.name, step, golden.greedy_ids[step], golden.top1_margin[step],
                         ours.top.front().token_id);
    }
  }
  return {};
}

std::string compare(Engine& engine, const GoldenCase& golden, float margin_bound,
                    Closeness& closeness) {
  std::string wrong = compare_greedy(engine, golden, margin_bound);
  return wrong.empty() ? compare_fed(engine, golden, margin_bound, closeness) : wrong;
}

}  // namespace pagoda::golden
