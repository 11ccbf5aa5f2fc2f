// Scheduler: which tokens the next step computes. A pure state machine: requests and step results
// in, plans out.
//
//   add() --> waiting --plan() admits--> running --commit()--> finished --take_finished()--> the
//   engine
//                 \_________ cancel() ______/_____________________^
//
// One step of the engine:
//
//   const Plan& plan = scheduler.plan();
//   ... compute plan's chunks, sample its rows ...
//   scheduler.commit(plan, sampled);               // or fail(plan, status)
//   for (auto& sequence : scheduler.take_finished()) ...
//
// Continuous batching (Yu et al., "Orca", OSDI 2022) with chunked prefill (Agrawal et al.,
// "Sarathi-Serve", OSDI 2024): a step takes one token of every sequence that decodes, then fills
// the token budget with chunks of prompts.
//
// Order: lower priority value first, then arrival. Nothing overtakes the head of the queue, so
// nothing starves within a priority. Running sequences never exceed the token budget, so every
// decode is in every step.
//
// Admission: a sequence runs only when the pool holds its worst case (prompt and max_tokens, or the
// model's length) besides the worst cases of all that run. Blocks are taken as tokens come; by that
// rule there always is one.
//
// Belongs to the engine thread, except check(), which is thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/status.h"
#include "engine/request.h"
#include "engine/sequence.h"
#include "kv/block_pool.h"

namespace pagoda {

struct SchedulerOptions {
  int block_size = 16;  // tokens
  int max_num_seqs = 64;
  int max_num_batched_tokens = 2048;
  int max_model_len = 0;           // tokens of prompt and output together
  std::vector<int> eos_token_ids;  // end a sequence unless its request ignores them
};

enum class Admission : std::uint8_t {
  kAdmitted,
  kNoSequencePlace,  // as many run as may
  kNoBlocks,         // the worst cases of what runs leave too few blocks
  kNeverFits,        // more blocks than the pool has
};

// One sequence's part of a step: tokens [first_position, first_position + num_new_tokens), and
// which of their rows of logits are wanted. The row at position p scores or samples the token at p
// + 1.
struct PlannedSequence {
  Sequence* sequence = nullptr;
  int first_position = 0;
  int num_new_tokens = 0;
  int num_scored_rows = 0;  // the chunk's first rows, each scored against sequence->token(p + 1)
  bool samples =
      false;  // the chunk's last row gives a new token; it is never among the scored ones

  int context_len() const { return first_position + num_new_tokens; }
};

struct Plan {
  std::vector<PlannedSequence> sequences;  // decodes first, then prefill chunks
  int num_decodes = 0;                     // the first sequences, one token each
  int num_tokens = 0;
  int num_samples = 0;  // sequences that sample

  bool empty() const { return sequences.empty(); }
  // No prompt tokens: every sequence gets one token.
  bool is_decode() const { return num_decodes == static_cast<int>(sequences.size()); }
};

// What the sampler made of one row: a token, or the error of that sequence alone.
struct SampleOutcome {
  int token_id = 0;
  Status status;
};

class Scheduler {
 public:
  // `pool` outlives the scheduler, which takes blocks from it and gives all of them back.
  Scheduler(SchedulerOptions options, BlockPool& pool);

  // kNeverFits, or kAdmitted: it will run some day. Thread-safe.
  Admission check(int num_prompt_tokens, const SamplingParams& params) const;

  // Queues params.n sequences; the engine has asked check().
  void add(const Request& request);
  // Ends all samples of a request, or one, with kCancelled. Blocks are free at once, or, for a
  // sequence that is in a step not committed yet, with that commit. Unknown ids are ignored.
  void cancel(RequestId id);
  void cancel_sample(RequestId id, int sample_index);

  // The next step; empty where nothing is to be done. Valid until the next plan().
  const Plan& plan();
  // outcomes: one for each sequence of the plan that samples, in the plan's order.
  void commit(const Plan& plan, std::span<const SampleOutcome> outcomes);
  // The step failed: all its sequences end with kError.
  void fail(const Plan& plan, const Status& status);

  // Sequences that have ended since the last call, in the order of their ends. They hold no blocks.
  std::vector<std::unique_ptr<Sequence>> take_finished();

  int num_waiting() const { return static_cast<int>(waiting_.size()); }
  int num_running() const { return static_cast<int>(running_.size()); }
  bool idle() const { return waiting_.empty() && running_.empty(); }
  const SchedulerOptions& options() const { return options_; }

 private:
  using SequencePtr = std::unique_ptr<Sequence>;

  int max_num_tokens(int num_prompt_tokens, const SamplingParams& params) const;
  int worst_case_blocks(int num_prompt_tokens, int max_num_tokens) const;
  int worst_case_blocks(const Sequence& sequence) const;
  Admission try_admit(SequencePtr& sequence);
  void plan_chunk(Sequence& sequence, int num_new_tokens);
  void append(Sequence& sequence, const SampleOutcome& outcome);
  bool is_stop_token(const Sequence& sequence, int token_id) const;
  void cancel_samples(RequestId id, std::optional<int> sample_index);
  void finish(Sequence& sequence, FinishReason reason);
  void collect_finished();

  SchedulerOptions options_;
  BlockPool& pool_;
  int num_reserved_blocks_ = 0;  // worst cases of what runs
  std::uint64_t next_arrival_ = 0;
  std::deque<SequencePtr> waiting_;   // by (priority, arrival)
  std::vector<SequencePtr> running_;  // by (priority, arrival)
  std::vector<SequencePtr> finished_;
  Plan plan_;
};

}  // namespace pagoda
