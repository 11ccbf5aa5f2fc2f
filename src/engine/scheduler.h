// Scheduler: which tokens the next step computes. A pure state machine: requests and step results
// in, plans out.
//
//   add() --> waiting --plan() admits--> running --commit()--> finished --take_finished()--> engine
//            ^ |  ^____plan() preempts____/  |                    ^
//  fetching _| \_____________________________\______cancel()______/
//
// One step of the engine:
//
//   const Plan& plan = scheduler.plan();
//   ... compute plan's chunks, sample its rows ...
//   scheduler.commit(plan, sampled, seconds);      // or fail(plan, status)
//   for (auto& sequence : scheduler.take_finished()) ...
//
// Lookahead: while a step is in flight, plan_ahead() gives the one behind it. Its first tokens may
// be ids that the device has sampled and the host has not read. No sequence is preempted for it.
//
// A sequence whose prefix the cache's tier has waits for those blocks beside the queue, once,
// and then in it again. It computes what has not come by then.
//
// step_shares.h says how many decodes and prompt tokens a step takes, waiting_queue.h which
// sequence goes first, kv/block_tables.h which blocks hold its tokens. docs/scheduling.md tells the
// policy whole, with its reasons.
//
// Every request that check() admits runs some day: the first one in the order is never preempted,
// and the pool holds the worst case of any one. A sequence that is preempted, or whose draw was
// deferred, is computed again to the same bits; nothing of its output is lost or said twice.
//
// Belongs to the engine thread, except check(), which is thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/status.h"
#include "engine/plan.h"
#include "engine/request.h"
#include "engine/sequence.h"
#include "engine/step_cost.h"
#include "engine/step_shares.h"
#include "engine/waiting_queue.h"
#include "kv/block_pool.h"
#include "kv/block_tables.h"
#include "kv/prefix_cache.h"

namespace pagoda {

struct SchedulerOptions {
  int block_size = 16;                   // tokens
  std::vector<int> group_windows = {0};  // of each cache group (kv/cache_groups.h)
  int max_num_seqs = 64;
  int max_num_batched_tokens = 2048;
  int row_tile = 1;                // tokens of a step that cost as much as one (ops/linear)
  int max_model_len = 0;           // tokens of prompt and output together
  int num_steps_per_turn = 1024;   // see WaitingQueue
  std::vector<int> eos_token_ids;  // end a sequence unless its request ignores them
};

enum class Admission : std::uint8_t {
  kAdmitted,
  kNoSequencePlace,  // as many run as may
  kNoBlocks,         // what runs leaves too few blocks
  kFetches,          // it waits for blocks of the cache's tier, and lets others pass
  kNeverFits,        // more blocks than the pool has
};

// Counters for /metrics; they only grow.
struct SchedulerCounters {
  std::uint64_t num_preemptions = 0;
  std::uint64_t num_priority_turns = 0;    // given to who had been overtaken
  std::uint64_t num_prefix_queries = 0;    // tokens of prompts that asked the prefix cache
  std::uint64_t num_prefix_hits = 0;       // of those, tokens that it had
  std::uint64_t num_told_prefix_hits = 0;  // in whole blocks: Sequence::num_cached_tokens()
  std::uint64_t num_block_copies = 0;
  std::uint64_t num_dropped_positions = 0;  // planned ahead for sequences that had ended by then
  std::uint64_t num_deferred_draws = 0;
};

class Scheduler {
 public:
  // REQUIRES: `pool` outlives the scheduler, which takes blocks from it and gives all of them back;
  // so does `cache`, a cache of the pool's blocks, or null: nothing is kept, nothing hashed.
  Scheduler(SchedulerOptions options, BlockPool& pool, PrefixCache* cache = nullptr);

  // Returns kNeverFits, or kAdmitted for a request that will run some day. Thread-safe.
  Admission check(int num_prompt_tokens, const SamplingParams& params) const;

  // Queues a sequence for each of the request's samples; the engine has asked check().
  void add(Request request);
  // Ends all samples of a request, or one, with kCancelled. Blocks are free at once, or, for a
  // sequence that is in steps not committed yet, with their commits. Unknown ids are ignored.
  void cancel(RequestId id, std::optional<int> sample_index = std::nullopt);

  // Plans the next step; empty where nothing is to be done, or only for sequences whose masks or
  // blocks are not there: then idle() is false. Every step before it has been committed. Valid until
  // its commit, and after that until the next plan.
  const Plan& plan();
  // Plans the step behind the one in flight; null where that has to be committed first. Valid as
  // above.
  const Plan* plan_ahead();
  // Takes the outcomes of a step: one for each sequence of the plan that samples and then one for
  // each of its forks, in the plan's order; those of sequences that have ended meanwhile are
  // dropped. `seconds`: what the step took; 0 where it was not measured, and then only the token
  // budget limits chunks. Steps are committed in their order.
  void commit(const Plan& plan, std::span<const SampleOutcome> outcomes, double seconds = 0);
  // Ends all sequences of a step that failed with kError. So has one that was planned behind it.
  void fail(const Plan& plan, const Status& status);

  // Takes the sequences that have ended since the last call, in the order of their ends. They hold
  // no blocks.
  std::vector<std::unique_ptr<Sequence>> take_finished();

  int num_waiting() const;
  int num_running() const;
  // Returns the sequences that wait for blocks of the cache's tier, in their order.
  std::span<const std::unique_ptr<Sequence>> fetching() const { return fetching_; }
  bool idle() const { return waiting_.empty() && running_.empty() && fetching_.empty(); }
  // Returns whether prompt tokens are left to plan, whether or not the last step had any.
  bool has_prompts() const;
  // Returns the number of blocks that a sequence could have: free ones, and ones that only the
  // cache holds.
  int num_free_blocks() const { return tables_.num_free(); }
  const SchedulerOptions& options() const { return options_; }
  const StepCost& cost() const { return cost_; }
  const SchedulerCounters& counters() const { return counters_; }

 private:
  using SequencePtr = std::unique_ptr<Sequence>;

  // Makes the request whose turn it is the first of all; called once a plan.
  void give_turn();
  StepShares share_next_step() const;
  int num_blocks_wanted(StepShares shares) const;
  void plan_step(StepShares shares);
  bool plan_running(StepShares& shares);
  int take_blocks(std::size_t index, int num_tokens);
  int grow(Sequence& sequence, int num_tokens);
  void preempt_last();
  void admit_waiting(StepShares& shares);
  Admission try_admit();
  bool has_blocks_for(const Sequence& sequence, int num_forks) const;
  void acquire_partial_match(Sequence& sequence);
  void fetch_blocks();

  // Applies its outcome.
  void complete(const Plan& plan);
  void commit_sequence(const PlannedSequence& planned, std::span<const SampleOutcome> outcomes);
  void append(Sequence& sequence, const SampleOutcome& outcome);
  void start_forks(Sequence& sequence, std::span<const SampleOutcome> outcomes);
  void finish_forks(Sequence& sequence, FinishReason reason);
  void finish(Sequence& sequence, FinishReason reason);
  void release(Sequence& sequence);

  SchedulerOptions options_;
  BlockTables tables_;
  StepCost cost_;
  bool decodes_waited_ = false;  // in the last step
  std::uint64_t next_arrival_ = 0;
  WaitingQueue waiting_;
  std::vector<SequencePtr> fetching_;  // by (priority, arrival)
  std::vector<SequencePtr> running_;   // by (priority, arrival)
  std::vector<SequencePtr> finished_;
  Plans plans_;
  bool has_committed_ = false;  // a step: from then on it is known what they cost
  SchedulerCounters counters_;
};

}  // namespace pagoda
