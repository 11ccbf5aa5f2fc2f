// share_step: decides whether a step computes decodes, and how many tokens of prompts.
//
// Decodes never wait longer than StepCost::max_mixed_step() decode steps take. This bound grows
// with the number of prompts that have a place to run. A chunk in a step with decodes ends with a
// tile of the products' rows: a partial tile costs as much as a whole one. If decodes leave prompts
// less than a quarter of the token budget, every other step has only prompts, under the same bound.
// (Decodes first, then prompts in chunks: Agrawal et al., "Sarathi-Serve", OSDI 2024.) A pure
// function.
#pragma once

#include <cstdint>

namespace pagoda {

// The sequences that could use the next step.
struct StepDemand {
  int num_decodes = 0;                 // sequences that decode, one token each
  int num_prompts = 0;                 // prompts that run, or wait and have a place to run
  std::int64_t num_prompt_tokens = 0;  // pending tokens of the running prompts
  bool decodes_waited = false;         // the step before had no decodes
};

// The limits of a step.
struct StepLimits {
  int max_num_batched_tokens = 0;
  // Tokens of a row tile; a partial tile costs as much as a whole one (ops/linear).
  int row_tile = 1;
  // From StepCost: the most prompt tokens in a step with decodes, and whether the next step should
  // have only decodes, to measure them.
  int max_prefill_tokens = 0;
  bool wants_decodes_alone = false;
};

struct StepShares {
  bool decodes = true;  // true: all of them; false: none
  int num_prefill_tokens = 0;
};

StepShares share_step(const StepDemand& demand, const StepLimits& limits);

}  // namespace pagoda
