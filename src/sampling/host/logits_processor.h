// LogitsProcessor: code of one's own between a model's logits and the choice of a token.
//
// One that is registered (EngineOptions::logits_processors) acts on every row of every request:
// greedy rows, every KV layout and steps that were started ahead as well. It comes after
// logit_bias and before every ban, so that it cannot bring back what a request has forbidden.
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

// Called on the engine's thread, a row at a time. For batch invariance, what
// it does must be a function of its arguments.
class LogitsProcessor {
 public:
  virtual ~LogitsProcessor() = default;

  // Returns whether it acts on the row. False: it leaves this row as it is, and the row goes the
  // way that it goes without it.
  virtual bool acts_on(const LogitsContext& row) const = 0;
  // Changes logits [vocab_size] in place; -infinity bans a token. A NaN or +infinity fails the
  // row's request.
  virtual void process(const LogitsContext& row, std::span<float> logits) const = 0;
};

}  // namespace pagoda
