// StepRunner: what computes the steps that the scheduler plans. ModelRunner is the one that serves;
// tests put others around it or in its place.
//
//   forward(plan) -> draw(plan) -> sample(plan)
//
// With lookahead the next step's forward() may come before this one's sample(), where draws_ahead()
// says that this one's tokens are on the device. Steps are sampled in the order of their forwards.
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
  std::vector<TokenLogprobs> scored;  // of the prompt's tokens behind the plan's scored rows
  Status score_error;                 // a row that cannot be scored: NaN
  // The hidden states of the plan's pooled rows, behind the last norm, in their order: [rows, hidden].
  std::vector<float> pooled;
};

// A token drawn from a row: by the planned sequence, or by one of its forks.
struct SampleOutput {
  Sequence* sequence = nullptr;
  std::optional<TokenLogprobs> logprobs;  // where asked for
  std::span<const float> logits;  // [vocab]; the row, until the next forward(). Empty where it was
                                  // drawn on the device and is not wanted
};

struct StepOutput {
  std::vector<SampleOutcome> outcomes;      // in the plan's order, as Scheduler::commit wants them
  std::vector<SampleOutput> samples;        // one an outcome
  std::vector<SequenceOutput> of_sequence;  // one a planned sequence
};

class StepRunner {
 public:
  virtual ~StepRunner() = default;

  // Starts the step; one that was planned ahead, where draws_ahead() of the one before it, or after
  // that one's sample(). After a failure the step's sequences must be given up: their cache is
  // undefined. kUnavailable: the device is gone, and no later step can work.
  virtual Status forward(const Plan& plan) = 0;
  // Draws the rows of the last step that wait for the tokens before them, which have been committed
  // by now.
  virtual Status draw(const Plan& plan) = 0;
  // Returns whether the tokens of the last step are on the device, before sample() and without the
  // host.
  virtual bool draws_ahead() const = 0;
  // Ends the oldest step. The error of one row stands in its outcome; a Status is the whole step's,
  // as above. wants_logits: the output has logits of rows that are drawn on the device, too. The
  // output is valid until the next sample().
  virtual Result<const StepOutput*> sample(const Plan& plan, bool wants_logits) = 0;
  // Waits for the steps that have not been sampled, drops their results, and forgets all sequences:
  // those that come may be another scheduler's.
  virtual void abandon() = 0;

  // Pages in memory between steps, for what comes next: no block from first_block on has been used.
  // A small part a call, because requests may wait; false: nothing was left to do. beside_prompts:
  // steps are long already, and only what is needed soon is not left for later ones.
  virtual bool prefault(int first_block, bool beside_prompts) = 0;

  // Returns whether a step may be started before the one in front of it has been read.
  virtual bool has_lookahead() const = 0;
  virtual RunnerStats stats() const = 0;
};

}  // namespace pagoda
