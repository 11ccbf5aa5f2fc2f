// SchedulerTest: a scheduler with a pool, and a runner that samples one token for every row.
#pragma once

#include "engine/scheduler.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

namespace pagoda {

constexpr int kEos = 0;
constexpr int kToken = 5;  // ends no sequence

// A scheduler with a pool, and a runner that samples one token for every row.
class SchedulerTest : public ::testing::Test {
 protected:
  void start(SchedulerOptions options, int num_blocks) {
    if (options.max_model_len == 0) options.max_model_len = 100;
    options.eos_token_ids = {kEos, 1};
    pool_.emplace(num_blocks);
    scheduler_.emplace(options, *pool_);
  }

  RequestId add(int num_prompt_tokens, const SamplingParams& params = {}, int priority = 0) {
    EXPECT_EQ(scheduler_->check(num_prompt_tokens, params), Admission::kAdmitted);
    const RequestId id = next_id_++;
    scheduler_->add({.id = id,
                     .generation = {.prompt_token_ids = std::vector<int>(num_prompt_tokens, 9),
                                    .sampling = params,
                                    .priority = priority}});
    return id;
  }

  // Runs one step. Returns what was planned, as (request, tokens).
  std::vector<std::pair<RequestId, int>> step(int token_id = kToken) {
    const Plan& plan = scheduler_->plan();
    std::vector<std::pair<RequestId, int>> planned;
    for (const PlannedSequence& p : plan.sequences) {
      planned.emplace_back(p.sequence->request_id(), p.num_new_tokens);
    }
    scheduler_->commit(plan, std::vector<SampleOutcome>(plan.num_samples, {.token_id = token_id}));
    return planned;
  }

  // Runs one step, which costs 5 ms if it has decodes, plus 1 ms per prompt token. Returns its
  // numbers of decodes and of prompt tokens.
  std::pair<int, int> timed_step() {
    const Plan& plan = scheduler_->plan();
    const int num_prefill_tokens = plan.num_tokens - plan.num_decodes;
    const double seconds = 0.001 * num_prefill_tokens + (plan.num_decodes > 0 ? 0.005 : 0);
    scheduler_->commit(plan, std::vector<SampleOutcome>(plan.num_samples, {.token_id = kToken}),
                       seconds);
    return {plan.num_decodes, num_prefill_tokens};
  }

  std::unique_ptr<Sequence> take_one() {
    auto finished = scheduler_->take_finished();
    EXPECT_EQ(finished.size(), 1u);
    return finished.empty() ? nullptr : std::move(finished[0]);
  }

  using Planned = std::vector<std::pair<RequestId, int>>;
  std::optional<BlockPool> pool_;
  std::optional<Scheduler> scheduler_;
  RequestId next_id_ = 0;
};

}  // namespace pagoda
