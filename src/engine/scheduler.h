// Scheduler: which tokens the next step computes. A pure state machine: requests and step results
// in, plans out.
//
//   add() --> waiting --plan() admits--> running --commit()--> finished --take_finished()--> engine
//              |  ^____plan() preempts____/  |                    ^
//              \_____________________________\______cancel()______/
//
// One step of the engine:
//
//   const Plan& plan = scheduler.plan();
//   ... compute plan's chunks, sample its rows ...
//   scheduler.commit(plan, sampled, seconds);      // or fail(plan, status)
//   for (auto& sequence : scheduler.take_finished()) ...
//
// Lookahead: while a step is in flight, plan_ahead() gives the one behind it, whose first tokens
// may be ids that the device has sampled and nobody has read. Where such a sequence turns out to
// have ended, what the second step computed of it is dropped, one position, and its blocks come
// back when that step is over: a block changes hands only after the last step that knows it. Ends
// by length are known ahead and drop nothing. Nobody is preempted for a step that is planned ahead:
// it is planned after the commit then, as is what waits for a token of a request's other samples.
//
// Continuous batching (Yu et al., "Orca", OSDI 2022) with chunked prefill (Agrawal et al.,
// "Sarathi-Serve", OSDI 2024): a step takes one token of every sequence that decodes, and chunks of
// prompts.
//
// Order: lower priority value first, then arrival. Nothing overtakes the head of the queue.
// Priority is every client's to choose, so it is a preference and no right: in every 1,024 steps in
// which others overtake them, the first that came of all that wait becomes the first of all,
// whatever its priority. So nothing starves, and those of better priority lose one place in some
// seconds.
//
// What a step takes of decodes and of prompts: step_shares.h.
//
// Blocks are taken as tokens come. A sequence is admitted when the pool holds all it knows besides
// what those that run know and a block for each of them to grow into. Where none is left, the last
// one in the order is preempted: it gives its blocks back, waits in its place in the queue, and is
// computed again from its tokens, to the same bits; nothing of its output is lost or said twice.
// The first one in the order is never preempted, and the pool holds the worst case of any one
// (kNeverFits otherwise), so there always is progress.
//
// A request's samples share its prompt. The first one computes it, the others wait with it and
// start at its end, in its blocks; a block that has room left is copied by whoever writes to it
// while others hold it. Of more samples than may run, the rest compute the prompt themselves.
//
// With a prefix cache a sequence starts behind the longest beginning of it that is cached, its last
// token excepted: full blocks are shared, of the block behind them a beginning is copied into a
// fresh block, or taken over where it is a tail that nobody holds. Rows of a prompt that are scored
// are always computed. Blocks enter the cache when they are full, the last one when its sequence
// ends or is preempted.
//
// A sequence whose draw was deferred keeps its place and its blocks, and is planned again when its
// mask is there.
//
// Belongs to the engine thread, except check(), which is thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "core/status.h"
#include "engine/request.h"
#include "engine/sequence.h"
#include "engine/step_cost.h"
#include "engine/step_shares.h"
#include "kv/block_pool.h"
#include "kv/block_tables.h"
#include "kv/prefix_cache.h"

namespace pagoda {

struct SchedulerOptions {
  int block_size = 16;  // tokens
  int max_num_seqs = 64;
  int max_num_batched_tokens = 2048;
  int row_tile = 1;                // tokens of a step that cost as much as one (ops/linear)
  int max_model_len = 0;           // tokens of prompt and output together
  int num_steps_per_turn = 1024;   // of overtaking, after which who was overtaken has a turn
  std::vector<int> eos_token_ids;  // end a sequence unless its request ignores them
};

enum class Admission : std::uint8_t {
  kAdmitted,
  kNoSequencePlace,  // as many run as may
  kNoBlocks,         // what runs leaves too few blocks
  kNeverFits,        // more blocks than the pool has
};

// One sequence's part of a step: tokens [first_position, first_position + num_new_tokens), and
// which of their rows of logits are wanted. The row at position p scores or samples the token at
// p + 1.
struct PlannedSequence {
  Sequence* sequence = nullptr;
  int first_position = 0;
  int num_new_tokens = 0;
  // The outcome of the step before that is the token at first_position; -1: it is known.
  int awaited_outcome = -1;
  int first_scored_row = 0;  // of the chunk
  int num_scored_rows = 0;   // from there, each scored against sequence->token(p + 1)
  // The chunk's last row gives a new token, to the sequence and to each of its forks; it is never
  // among the scored ones.
  bool samples = false;

  int context_len() const { return first_position + num_new_tokens; }
};

struct Plan {
  std::vector<PlannedSequence> sequences;  // decodes first, then prefill chunks
  std::vector<PlannedCopy> block_copies;
  int num_decodes = 0;  // the first sequences, one token each
  int num_tokens = 0;
  int num_samples = 0;  // tokens that come of it: of sequences that sample, and of their forks

  bool empty() const { return sequences.empty(); }
  // No prompt tokens: every sequence gets one token.
  bool is_decode() const { return num_decodes == static_cast<int>(sequences.size()); }
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

// What the sampler made of one row: a token, or the error of that sequence alone.
struct SampleOutcome {
  int token_id = 0;
  Status status;
  // Neither: the row's mask is not there. Only of a sequence that has output; what the row was
  // drawn from is computed again, to the same bits, once the mask is there.
  bool is_deferred = false;
};

class Scheduler {
 public:
  // `pool` outlives the scheduler, which takes blocks from it and gives all of them back; so does
  // `cache`, a cache of the pool's blocks, or null: nothing is kept, nothing hashed.
  Scheduler(SchedulerOptions options, BlockPool& pool, PrefixCache* cache = nullptr);

  // kNeverFits, or kAdmitted: it will run some day. Thread-safe.
  Admission check(int num_prompt_tokens, const SamplingParams& params) const;

  // Queues a sequence for each of the request's samples; the engine has asked check().
  void add(Request request);
  // Ends all samples of a request, or one, with kCancelled. Blocks are free at once, or, for a
  // sequence that is in steps not committed yet, with their commits. Unknown ids are ignored.
  void cancel(RequestId id);
  void cancel_sample(RequestId id, int sample_index);

  // The next step; empty where nothing is to be done, or only for sequences whose masks are not
  // there: then idle() is false. Every step before it has been committed.
  // Valid until its commit, and after that until the next plan.
  const Plan& plan();
  // The step behind the one in flight; null where that has to be committed first. Valid as above.
  const Plan* plan_ahead();
  // outcomes: one for each sequence of the plan that samples and then one for each of its forks, in
  // the plan's order; those of sequences that have ended meanwhile are dropped. `seconds`: what the
  // step took; 0 where nobody measures, and then only the token budget limits chunks. Steps are
  // committed in their order.
  void commit(const Plan& plan, std::span<const SampleOutcome> outcomes, double seconds = 0);
  // The step failed: all its sequences end with kError. So has one that was planned behind it.
  void fail(const Plan& plan, const Status& status);

  // Sequences that have ended since the last call, in the order of their ends. They hold no blocks.
  std::vector<std::unique_ptr<Sequence>> take_finished();

  int num_waiting() const { return static_cast<int>(waiting_.size()) + num_waiting_forks_; }
  int num_running() const;
  bool idle() const { return waiting_.empty() && running_.empty(); }
  // Prompt tokens are left to plan, whether or not the last step had any.
  bool has_prompts() const;
  // That a sequence could have: free ones, and cached ones that nobody else holds.
  int num_free_blocks() const { return tables_.num_free(); }
  const SchedulerOptions& options() const { return options_; }
  const StepCost& cost() const { return cost_; }
  const SchedulerCounters& counters() const { return counters_; }

 private:
  using SequencePtr = std::unique_ptr<Sequence>;

  static bool runs_before(const SequencePtr& a, const SequencePtr& b);
  template <typename Sequences>
  static void insert_in_order(Sequences& sequences, SequencePtr sequence);

  // Sizes.
  int max_num_tokens(int num_prompt_tokens, const SamplingParams& params) const;
  int worst_case_blocks(int num_prompt_tokens, int max_num_tokens) const;
  static SequenceLength length_of(const Sequence& sequence);

  // A plan.
  Plan& next_plan() { return plans_[num_in_flight_ == 0 ? newest_ : 1 - newest_]; }
  void look_for_masks();
  void give_turn();
  StepShares share_next_step() const;
  static int num_plannable(const Sequence& sequence);
  static int tokens_for(const Sequence& sequence, StepShares& shares);
  int num_decodes() const;
  int num_blocks_wanted(StepShares shares) const;
  void number_outcomes();
  void plan_step(StepShares shares);
  bool plan_running(StepShares& shares);
  int take_blocks(std::size_t index, int num_tokens);
  int grow(Sequence& sequence, int num_tokens);
  void preempt_last();
  void admit_waiting(StepShares& shares);
  Admission try_admit();
  bool has_blocks_for(const Sequence& sequence, int num_forks) const;
  static SequencePtr split_forks(Sequence& sequence, int num_kept);
  int num_readable(const Sequence& sequence) const;
  void acquire_beginning(Sequence& sequence);
  void plan_chunk(Sequence& sequence, int num_new_tokens, bool is_decode);
  const Plan& launch();

  // Its outcome.
  void land(const Plan& plan);
  void commit_sequence(const PlannedSequence& planned, std::span<const SampleOutcome> outcomes);
  void defer(Sequence& sequence);
  void append(Sequence& sequence, const SampleOutcome& outcome);
  bool is_stop_token(const Sequence& sequence, int token_id) const;
  void start_forks(Sequence& sequence, std::span<const SampleOutcome> outcomes);
  void end_forks(Sequence& sequence, FinishReason reason);
  void drop_cancelled_forks(Sequence& sequence);
  void hand_over(Sequence& sequence);
  void cancel_samples(RequestId id, std::optional<int> sample_index);
  void finish(Sequence& sequence, FinishReason reason);
  void give_back(Sequence& sequence);
  void release_blocks(Sequence& sequence);
  template <typename Sequences>
  void collect_finished(Sequences& sequences);

  SchedulerOptions options_;
  BlockTables tables_;
  StepCost cost_;
  bool decodes_waited_ = false;   // in the last step
  int num_steps_overtaking_ = 0;  // since one overtook others that still wait; 0: none did
  std::uint64_t next_arrival_ = 0;
  std::deque<SequencePtr> waiting_;   // by (priority, arrival)
  int num_waiting_forks_ = 0;         // of those
  std::vector<SequencePtr> running_;  // by (priority, arrival)
  std::vector<SequencePtr> finished_;
  std::array<Plan, 2> plans_;
  int newest_ = 0;                         // of plans_, the last one launched
  int num_in_flight_ = 0;                  // plans that are not committed
  bool has_committed_ = false;             // a step: from then on it is known what they cost
  std::vector<PlannedSequence> prefills_;  // of a plan, until the decodes are all there
  SchedulerCounters counters_;
};

inline bool Scheduler::runs_before(const SequencePtr& a, const SequencePtr& b) {
  return std::tuple(a->priority(), a->arrival()) < std::tuple(b->priority(), b->arrival());
}

template <typename Sequences>
void Scheduler::insert_in_order(Sequences& sequences, SequencePtr sequence) {
  const auto place = std::upper_bound(sequences.begin(), sequences.end(), sequence, runs_before);
  sequences.insert(place, std::move(sequence));
}

}  // namespace pagoda
