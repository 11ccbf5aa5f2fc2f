// LogitsProcessor: user code that changes a model's logits before a token is chosen.
//
// A registered processor (EngineOptions::logits_processors) acts on every row of every request:
// also on greedy rows, with every KV layout and in steps that were started ahead. It runs after
// logit_bias and before all bans, so that it cannot undo a request's ban.
#pragma once

#include <span>

#include "sampling/sampling_params.h"

namespace pagoda {

// The facts that a processor may look at besides the logits.
struct LogitsContext {
  const SamplingParams& params;
  std::span<const int> tokens;  // [num_tokens]; prompt and output so far
  int num_prompt_tokens = 0;
};

// Called on the engine's thread, one row at a time. For batch invariance its results must depend on
// its arguments alone.
class LogitsProcessor {
 public:
  virtual ~LogitsProcessor() = default;

  // Returns whether it acts on the row. If not, the row is handled as if there were no processor.
  virtual bool acts_on(const LogitsContext& row) const = 0;
  // Changes logits [vocab_size] in place; -infinity bans a token. A NaN or +infinity fails the
  // row's request.
  virtual void process(const LogitsContext& row, std::span<float> logits) const = 0;
};

}  // namespace pagoda
