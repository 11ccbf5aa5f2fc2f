// Plan: what a step computes. SampleOutcome: the result of one draw. Plans: the plans in flight.
#pragma once

#include <array>
#include <vector>

#include "core/status.h"
#include "kv/block_tables.h"

namespace pagoda {

class Sequence;  // engine/sequence.h

// One sequence's part of a step: tokens [first_position, first_position + num_new_tokens), and
// which of their rows of logits are wanted. The row at position p scores or samples the token at
// p + 1.
struct PlannedSequence {
  Sequence* sequence = nullptr;
  int first_position = 0;
  int num_new_tokens = 0;
  // Index, among the outcomes of the step before, of the token at first_position; -1: that token is
  // known.
  int awaited_outcome = -1;
  // Rows of the prompt that are read. If the sequence pools, their hidden states become the
  // prompt's embedding; else each row is scored against sequence->token(p + 1).
  int first_read_row = 0;  // index in the chunk
  int num_read_rows = 0;   // rows from first_read_row on
  // The chunk's last row gives a new token to the sequence and to each of its forks. Such a row is
  // never scored.
  bool samples = false;

  int context_len() const { return first_position + num_new_tokens; }
};

struct Plan {
  std::vector<PlannedSequence> sequences;  // decodes first, then prefill chunks
  std::vector<PlannedCopy> block_copies;
  int num_decodes = 0;  // the first sequences, one token each
  int num_tokens = 0;
  int num_samples = 0;  // tokens that the step samples, those of forks included

  bool empty() const { return sequences.empty(); }
  // Returns whether the plan has only decodes: every sequence computes one token.
  bool is_decode() const { return num_decodes == static_cast<int>(sequences.size()); }
};

// The sampler's outcome for one row: a token, or an error that ends only this sequence.
struct SampleOutcome {
  int token_id = 0;
  Status status;
  // Neither token nor error, because the row's mask is not ready. The row is computed again, to the
  // same bits, once the mask is ready. Only for sequences that have output.
  bool is_deferred = false;
};

// The plans of the steps in flight, at most two. Their memory is reused from step to step.
// Thread-compatible.
class Plans {
 public:
  explicit Plans(int max_num_seqs);

  // Starts the next plan: clears it, except the copies already in next().block_copies.
  void begin();
  // Returns the plan that is being made. It may reuse the memory of a committed plan.
  Plan& next() { return plans_[num_in_flight_ == 0 ? newest_ : 1 - newest_]; }
  // Adds a sequence's part. Decodes come first in the plan, in whatever order parts are added.
  void add(const PlannedSequence& planned, bool is_decode);
  // Appends the prefill chunks to the decodes.
  void end();
  // Puts the next plan in flight and returns it.
  const Plan& launch();

  int num_in_flight() const { return num_in_flight_; }
  const Plan& newest() const { return plans_[newest_]; }
  // Completes the oldest plan in flight. Ends the process if `plan` is not that one.
  Plan& complete(const Plan& plan);

 private:
  std::array<Plan, 2> plans_;
  int newest_ = 0;                         // the last one launched
  int num_in_flight_ = 0;                  // plans that are not committed
  std::vector<PlannedSequence> prefills_;  // of the next plan, until end() appends them
};

}  // namespace pagoda
