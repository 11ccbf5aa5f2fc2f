// Golden cases: the results of a float32 reference for a prompt, and how close an engine's results
// are to them.
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
  std::vector<int> greedy_ids;  // of greedy decoding without a stop
  std::vector<std::vector<std::pair<int, float>>>
      top_logprobs;                // of each greedy step: id and log-probability, best first
  std::vector<float> top1_margin;  // of each step: the best minus the second best
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

// Feeds prompt and golden tokens as one prompt. Compares every log-probability in it, and the best
// token of every step. Returns what is wrong.
std::string compare_fed(Engine& engine, const GoldenCase& golden, float margin_bound,
                        Closeness& closeness);

// Decodes the prompt greedily, then feeds it with the golden tokens. Returns an empty string, or
// what is wrong: a token that differs although the golden margin is above `margin_bound`, an answer
// of the wrong length, or a missing log-probability. Adds the differences of the prompt's
// log-probabilities, and of the listed ones above -8, to `closeness`.
std::string compare(Engine& engine, const GoldenCase& golden, float margin_bound,
                    Closeness& closeness);

}  // namespace pagoda::golden
