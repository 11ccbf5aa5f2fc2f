// StepRunner: the interface of what computes the scheduler's steps. ModelRunner is the real one;
// tests wrap or replace it.
//
//   forward(plan) -> draw(plan) -> sample(plan)
//
// With lookahead the next step's forward() may come before this one's sample(), if draws_ahead()
// says that this one's tokens are drawn on the device. Steps are sampled in the order of their
// forwards.
//
// Belongs to the engine thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/status.h"
#include "engine/engine_stats.h"
#include "engine/scheduler.h"
#include "sampling/token_logprobs.h"

namespace pagoda {

// The output of a step for one planned sequence. The vector keeps its memory from step to step.
struct SequenceOutput {
  std::vector<TokenLogprobs> scored;  // of the prompt tokens that the plan's scored rows predict
  Status score_error;                 // set if a row cannot be scored: NaN
  // The hidden states of the plan's pooled rows, after the last norm, in their order: [rows,
  // hidden].
  std::vector<float> pooled;
};

// A token drawn from a row: by the planned sequence, or by one of its forks.
struct SampleOutput {
  Sequence* sequence = nullptr;
  std::optional<TokenLogprobs> logprobs;  // if asked for
  std::span<const float> logits;  // [vocab]; the row, until the next forward(). Empty where it was
                                  // drawn on the device and is not wanted
};

struct StepOutput {
  std::vector<SampleOutcome> outcomes;  // in the plan's order, as Scheduler::commit() takes them
  std::vector<SampleOutput> samples;    // one per outcome
  std::vector<SequenceOutput> of_sequence;  // one per planned sequence
};

class StepRunner {
 public:
  virtual ~StepRunner() = default;

  // Starts the step. A step that was planned ahead starts only if draws_ahead() is true of the step
  // before it, or after that step's sample(). After a failure the caller ends the step's sequences,
  // because their cache is undefined. kUnavailable: the device is lost, and no later step can work.
  virtual Status forward(const Plan& plan) = 0;
  // Draws the rows of the last step that depend on their previous tokens. REQUIRES: those tokens
  // have been committed.
  virtual Status draw(const Plan& plan) = 0;
  // Returns whether the device draws all tokens of the last step by itself, before sample().
  virtual bool draws_ahead() const = 0;
  // Ends the oldest step. An error of one row is in that row's outcome; an error that is returned
  // is the whole step's, as for forward(). wants_logits: the output also has the logits of rows
  // that are drawn on the device. The output is valid until the next sample().
  virtual Result<const StepOutput*> sample(const Plan& plan, bool wants_logits) = 0;
  // Waits for the steps that have not been sampled, drops their results and forgets all sequences,
  // because later plans may come from another scheduler.
  virtual void abandon() = 0;

  // Pages in memory for later steps, between two steps. No block from first_block on has been used.
  // Each call pages in a small part, because requests may wait; false: nothing was left to do.
  // beside_prompts: steps have prompts and are long already, so only memory that is needed soon is
  // paged in.
  virtual bool prefault(int first_block, bool beside_prompts) = 0;

  // Returns whether a step may be started before the results of the one before it are read.
  virtual bool has_lookahead() const = 0;
  virtual RunnerStats stats() const = 0;
};

}  // namespace pagoda
