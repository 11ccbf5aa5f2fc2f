// Golden cases: what a reference computed in float32 for a prompt, and how close an engine comes to
// it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/status.h"
#include "engine/engine.h"
#include "tests/support/source_path.h"

namespace pagoda::golden {

// The folder of the checkpoints with golden outputs.
inline const std::string kData = testing::source_path("tests/golden/data/");

struct GoldenCase {
  std::string name;
  std::vector<int> prompt_ids;
  std::vector<int> greedy_ids;  // what greedy decoding without a stop gives
  std::vector<std::vector<std::pair<int, float>>>
      top_logprobs;                // of each greedy step: id and log-probability, best first
  std::vector<float> top1_margin;  // of each step: best less second best
  std::vector<std::optional<float>> prompt_logprobs;
};

// Reads a golden.json: {"cases": [...]}.
Result<std::vector<GoldenCase>> read_golden_cases(const std::string& path);

// The absolute differences of log-probabilities over one or more cases.
struct Closeness {
  double sum = 0;
  double largest = 0;
  std::int64_t count = 0;
  double mean() const { return count > 0 ? sum / static_cast<double>(count) : 0; }
  void add(double difference);
};

// Decodes the case greedily and feeds it the golden tokens. Returns an empty string, or what is
// wrong: a token that differs where the golden margin is above `margin_bound`, an answer of the
// wrong length, a missing log-probability. Differences of the prompt's log-probabilities and of the
// listed ones above -8 go to `closeness`.
std::string compare(Engine& engine, const GoldenCase& golden, float margin_bound,
                    Closeness& closeness);

}  // namespace pagoda::golden
