// Plan: what a step computes. SampleOutcome: what comes of it. Plans: those that are in flight.
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
  // The outcome of the step before that is the token at first_position; -1: it is known.
  int awaited_outcome = -1;
  // Rows of the prompt that are read: where the sequence pools, their hidden states become the
  // prompt's embedding; else each is scored against sequence->token(p + 1).
  int first_read_row = 0;  // of the chunk
  int num_read_rows = 0;   // from there
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
  // Returns whether it has no prompt tokens: every sequence gets one token.
  bool is_decode() const { return num_decodes == static_cast<int>(sequences.size()); }
};

// The sampler's outcome for one row: a token, or the error of that sequence alone.
struct SampleOutcome {
  int token_id = 0;
  Status status;
  // Neither: the row's mask is not there. Only of a sequence that has output; what the row was
  // drawn from is computed again, to the same bits, once the mask is there.
  bool is_deferred = false;
};

// The plans of the steps in flight, two at most, which use the same two vectors again and again.
// Thread-compatible.
class Plans {
 public:
  explicit Plans(int max_num_seqs);

  // Starts the next plan, empty but for what has been added to next().block_copies already.
  void begin();
  // Returns the plan that is being made, which may use the memory of one that was committed.
  Plan& next() { return plans_[num_in_flight_ == 0 ? newest_ : 1 - newest_]; }
  // Decodes go first, whatever the order of the calls.
  void add(const PlannedSequence& planned, bool is_decode);
  // Puts the prefill chunks behind the decodes.
  void end();
  // Puts the next plan in flight; it is in flight from here on.
  const Plan& launch();

  int num_in_flight() const { return num_in_flight_; }
  const Plan& newest() const { return plans_[newest_]; }
  // Completes the oldest plan in flight; it ends the process where `plan` is another one.
  Plan& complete(const Plan& plan);

 private:
  std::array<Plan, 2> plans_;
  int newest_ = 0;                         // the last one launched
  int num_in_flight_ = 0;                  // plans that are not committed
  std::vector<PlannedSequence> prefills_;  // of a plan, until the decodes are all there
};

}  // namespace pagoda
