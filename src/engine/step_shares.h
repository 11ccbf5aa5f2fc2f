// share_step: which of those that run a step computes, and how many tokens of prompts with them.
//
// Decodes never wait for more than what a step of StepCost::max_mixed_step() decode steps takes,
// which grows with the prompts that have a place to run. Chunks beside decodes end with a tile of
// the products' rows, because a part of one costs as much as a whole. Where decodes leave prompts
// less than a quarter of the token budget, every other step is the prompts' alone, under the same
// bound. (Decodes first, prompts in chunks behind them: Agrawal et al., "Sarathi-Serve", OSDI
// 2024.) A pure function.
#pragma once

#include <cstdint>

namespace pagoda {

// The sequences that could use the next step.
struct StepDemand {
  int num_decodes = 0;                 // sequences that decode, one token each
  int num_prompts = 0;                 // that run, or wait and have a place to run
  std::int64_t num_prompt_tokens = 0;  // pending, of those that run
  bool decodes_waited = false;         // in the step before
};

// The limits of a step.
struct StepLimits {
  int max_num_batched_tokens = 0;
  int row_tile = 1;  // tokens of a step that cost as much as one (ops/linear)
  // StepCost's: prompt tokens that decodes may wait for, and whether the next step should be of
  // decodes alone, which is measured.
  int max_prefill_tokens = 0;
  bool wants_decodes_alone = false;
};

struct StepShares {
  bool decodes = true;  // all of them; else none
  int num_prefill_tokens = 0;
};

StepShares share_step(const StepDemand& demand, const StepLimits& limits);

}  // namespace pagoda
