#include "engine/step_shares.h"

#include <algorithm>

namespace pagoda {
namespace {

// Returns the most prompt tokens, up to `num_tokens`, that together with the decodes fill whole
// tiles. Returns all of them if whole tiles would leave out half: each step reads a context's keys
// and values once, however few tokens it computes.
int whole_tiles(int num_tokens, int num_decodes, int tile) {
  const int first = tile - num_decodes % tile;  // tokens that fill up the decodes' last tile
  const int whole = first + (num_tokens - first) / tile * tile;
  return num_tokens < first || whole <= num_tokens - whole ? num_tokens : whole;
}

}  // namespace

StepShares share_step(const StepDemand& demand, const StepLimits& limits) {
  const int budget = limits.max_num_batched_tokens;
  if (demand.num_decodes == 0) return {.decodes = true, .num_prefill_tokens = budget};
  if (demand.num_prompts == 0 || limits.wants_decodes_alone) return {};
  const int affordable = limits.max_prefill_tokens;
  const int left = budget - demand.num_decodes;
  const bool are_crowded_out =
      left < budget / 4 && left < affordable && left < demand.num_prompt_tokens;
  if (are_crowded_out && !demand.decodes_waited)
    return {.decodes = false, .num_prefill_tokens = std::min(budget, affordable)};
  return {.decodes = true,
          .num_prefill_tokens =
              std::min(left, whole_tiles(affordable, demand.num_decodes, limits.row_tile))};
}

}  // namespace pagoda
