// Scheduler: decides which tokens the next step computes. A pure state machine: it takes requests
// and the results of steps, and makes plans.
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
// Lookahead: while a step is in flight, plan_ahead() plans the next one. Its first tokens may be
// ids that the device has drawn and the host has not read. No sequence is preempted for it.
//
// A sequence may have a prefix in the cache's tier (kv/block_tier.h). Then it waits beside the
// queue, once, until those blocks are loaded, and goes back into the queue. It computes the blocks
// that could not be loaded.
//
// step_shares.h says how many decodes and prompt tokens a step takes, waiting_queue.h which
// sequence goes first, kv/block_tables.h which blocks hold its tokens. docs/scheduling.md explains
// the whole policy with its reasons.
//
// Every request that check() admits will run: the first one in the order is never preempted, and
// the pool holds the worst case of any single one. A sequence that is preempted, or whose draw was
// deferred, is computed again to the same bits. None of its output is lost or sent twice.
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
  // Tokens of a row tile; a partial tile costs as much as a whole one (ops/linear).
  int row_tile = 1;
  int max_model_len = 0;           // tokens of prompt and output together
  int num_steps_per_turn = 1024;   // see WaitingQueue
  std::vector<int> eos_token_ids;  // end a sequence unless its request ignores them
};

enum class Admission : std::uint8_t {
  kAdmitted,
  kNoSequencePlace,  // max_num_seqs sequences run or fetch
  kNoBlocks,         // the sequences that run leave too few blocks
  kFetches,          // it waits for blocks of the cache's tier, and others may pass it
  kNeverFits,        // needs more blocks than the pool has
};

// Counters for /metrics; they only grow.
struct SchedulerCounters {
  std::uint64_t num_preemptions = 0;
  std::uint64_t num_priority_turns = 0;    // given to requests that had been overtaken
  std::uint64_t num_prefix_queries = 0;    // prompt tokens looked up in the prefix cache
  std::uint64_t num_prefix_hits = 0;       // of those, tokens that were found
  std::uint64_t num_told_prefix_hits = 0;  // found in whole blocks: Sequence::num_cached_tokens()
  std::uint64_t num_block_copies = 0;
  std::uint64_t num_dropped_positions = 0;  // planned ahead for sequences that ended before
  std::uint64_t num_deferred_draws = 0;
};

class Scheduler {
 public:
  // REQUIRES: `pool` and `cache` outlive the scheduler, and `cache` holds blocks of `pool`. If
  // `cache` is null nothing is cached or hashed. The scheduler takes blocks from the pool and gives
  // all of them back.
  Scheduler(SchedulerOptions options, BlockPool& pool, PrefixCache* cache = nullptr);

  // Returns kNeverFits, or kAdmitted for a request that will run. Thread-safe.
  Admission check(int num_prompt_tokens, const SamplingParams& params) const;

  // Queues a sequence for each of the request's samples. REQUIRES: check() admits the request.
  void add(Request request);
  // Ends all samples of a request, or one, with kCancelled. Their blocks are freed at once; those
  // of a sequence in flight, when its steps are committed. Unknown ids are ignored.
  void cancel(RequestId id, std::optional<int> sample_index = std::nullopt);

  // Plans the next step. REQUIRES: every step before it has been committed. The plan is empty if
  // there are no sequences, or if all of them wait for masks or blocks: then idle() is false. It
  // stays valid until its commit, and after that until the next plan.
  const Plan& plan();
  // Plans the step after the one in flight; null if that one has to be committed first. Valid as
  // the result of plan().
  const Plan* plan_ahead();
  // Takes the outcomes of a step, in the plan's order: one for each sequence that samples, followed
  // by one for each of its forks. Outcomes of sequences that have ended meanwhile are dropped.
  // `seconds`: the step's duration, or 0 if it was not measured. Before any is measured only the
  // token budget limits chunks. Steps are committed in the order of their plans.
  void commit(const Plan& plan, std::span<const SampleOutcome> outcomes, double seconds = 0);
  // Ends all sequences of a failed step with kError. A step that was planned after it has failed
  // too, and the caller fails it next.
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
  // Returns the number of blocks that a sequence could get: free ones, and ones that only the cache
  // holds.
  int num_free_blocks() const { return tables_.num_free(); }
  const SchedulerOptions& options() const { return options_; }
  const StepCost& cost() const { return cost_; }
  const SchedulerCounters& counters() const { return counters_; }

 private:
  using SequencePtr = std::unique_ptr<Sequence>;

  // Moves the request whose turn it is to the front. Called once per plan.
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

  // Completes a step in flight, before its outcomes are applied.
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
  // Whether any step was committed. Before that the cost of steps is unknown.
  bool has_committed_ = false;
  SchedulerCounters counters_;
};

}  // namespace pagoda
