#include "engine/step_shares.h"

#include <gtest/gtest.h>

#include <limits>

namespace pagoda {
namespace {

constexpr int kUnlimited = std::numeric_limits<int>::max();

struct Case {
  const char* name;
  StepDemand demand;
  StepLimits limits;
  bool decodes;
  int num_prefill_tokens;
};

constexpr Case kCases[] = {
    {"without decodes a step is the prompts', whatever it takes",
     {.num_prompts = 1, .num_prompt_tokens = 900},
     {.max_num_batched_tokens = 256, .row_tile = 16, .max_prefill_tokens = 40},
     true,
     256},
    {"decodes alone",
     {.num_decodes = 3},
     {.max_num_batched_tokens = 256, .max_prefill_tokens = 40},
     true,
     0},
    {"a step of decodes is measured",
     {.num_decodes = 3, .num_prompts = 2, .num_prompt_tokens = 900},
     {.max_num_batched_tokens = 256, .max_prefill_tokens = 40, .wants_decodes_alone = true},
     true,
     0},
    {"a chunk that decodes may wait for",
     {.num_decodes = 3, .num_prompts = 1, .num_prompt_tokens = 900},
     {.max_num_batched_tokens = 256, .max_prefill_tokens = 40},
     true,
     40},
    {"nothing is measured yet: what decodes leave",
     {.num_decodes = 3, .num_prompts = 1, .num_prompt_tokens = 900},
     {.max_num_batched_tokens = 256, .max_prefill_tokens = kUnlimited},
     true,
     253},
    {"a chunk ends with a tile: 3 decodes and 29 tokens fill two of 16",
     {.num_decodes = 3, .num_prompts = 1, .num_prompt_tokens = 900},
     {.max_num_batched_tokens = 256, .row_tile = 16, .max_prefill_tokens = 40},
     true,
     29},
    {"what does not fill the decodes' tile stays",
     {.num_decodes = 3, .num_prompts = 1, .num_prompt_tokens = 900},
     {.max_num_batched_tokens = 256, .row_tile = 16, .max_prefill_tokens = 12},
     true,
     12},
    {"a tile that would leave out half is not kept to",
     {.num_decodes = 15, .num_prompts = 1, .num_prompt_tokens = 900},
     {.max_num_batched_tokens = 256, .row_tile = 16, .max_prefill_tokens = 10},
     true,
     10},
    {"decodes that fill their tile begin another",
     {.num_decodes = 16, .num_prompts = 1, .num_prompt_tokens = 900},
     {.max_num_batched_tokens = 256, .row_tile = 16, .max_prefill_tokens = 40},
     true,
     32},
    {"where decodes leave less than a quarter, prompts have a step of their own",
     {.num_decodes = 200, .num_prompts = 1, .num_prompt_tokens = 900},
     {.max_num_batched_tokens = 256, .max_prefill_tokens = 180},
     false,
     180},
    {"of the budget at most",
     {.num_decodes = 200, .num_prompts = 1, .num_prompt_tokens = 900},
     {.max_num_batched_tokens = 256, .max_prefill_tokens = kUnlimited},
     false,
     256},
    {"and not twice in a row",
     {.num_decodes = 200, .num_prompts = 1, .num_prompt_tokens = 900, .decodes_waited = true},
     {.max_num_batched_tokens = 256, .max_prefill_tokens = 180},
     true,
     56},
    {"nor where a quarter is left",
     {.num_decodes = 192, .num_prompts = 1, .num_prompt_tokens = 900},
     {.max_num_batched_tokens = 256, .max_prefill_tokens = 180},
     true,
     64},
    {"nor where what is left is all that is wanted",
     {.num_decodes = 200, .num_prompts = 1, .num_prompt_tokens = 56},
     {.max_num_batched_tokens = 256, .max_prefill_tokens = 180},
     true,
     56},
    {"nor where it is all that decodes may wait for",
     {.num_decodes = 200, .num_prompts = 1, .num_prompt_tokens = 900},
     {.max_num_batched_tokens = 256, .max_prefill_tokens = 50},
     true,
     50},
};

TEST(StepSharesTest, AreAsTheTableSays) {
  for (const Case& each : kCases) {
    const StepShares shares = share_step(each.demand, each.limits);
    EXPECT_EQ(shares.decodes, each.decodes) << each.name;
    EXPECT_EQ(shares.num_prefill_tokens, each.num_prefill_tokens) << each.name;
  }
}

}  // namespace
}  // namespace pagoda
