// StepCost: what decodes and prompt tokens cost, from the steps measured, and so how long a chunk
// of a prompt may be beside decodes.
//
// A step with decodes and t prompt tokens takes d + p * t seconds. Steps of decodes alone give d,
// the others p. Each measurement moves its estimate half of the way, and counts as no more than
// twice and no less than half of it: a single stall of the machine changes little, a new load is
// known after a few steps. (Chunks beside decodes: Agrawal et al., "Sarathi-Serve", OSDI 2024,
// where their length is a constant found offline.)
//
// Each prompt that waits for its first token brings time with it, the first one and a half decode
// steps, the others two and a half: a single one changes the pace of those that decode little, and
// the more wait, the larger their share is. With a share for decodes that no queue changes, prompts
// fall behind until all but one sequence wait, and that one decodes alone, at the worst use of the
// machine. Past six prompts a step is theirs to nine tenths, and more would gain them a tenth at
// most.
//
// A function of the durations it is given: it reads no clock. Thread-compatible.
#pragma once

#include <algorithm>
#include <limits>

namespace pagoda {

class StepCost {
 public:
  // In decode steps, what waiting prompts have of a step with decodes at most: the first one, and
  // each other.
  static constexpr double kMaxShareOfFirst = 1.5, kMaxShareOfOther = 2.5;
  // What chunks are cut for: a step of a real machine takes a tenth more than the last one did, now
  // and then.
  static constexpr double kAimed = 0.87;
  static constexpr int kMaxSharingPrompts = 6;
  // So many steps after the last one of decodes alone, the next one is: loads change.
  static constexpr int kRemeasureSteps = 32;
  static constexpr int kUnlimited = std::numeric_limits<int>::max();

  // A step that is over; 0 seconds: nobody measures, and nothing is limited.
  void observe(int num_decodes, int num_prefill_tokens, double seconds);

  // A step with decodes takes as many decode steps at most: 2.5 while one prompt waits, 15 while
  // six or more do.
  static constexpr double max_mixed_step(int num_prompts) { return 1 + max_share(num_prompts); }

  // Prompt tokens beside decodes, from 1. num_prompts: that could use the step, from 1.
  int max_prefill_tokens(int num_prompts) const;
  // The estimate is missing, old, or of far fewer decodes than these: the next step should be of
  // decodes alone.
  bool wants_decodes_alone(int num_decodes) const;

  double decode_step_s() const { return decode_step_s_; }      // 0: unknown
  double prefill_token_s() const { return prefill_token_s_; }  // 0: unknown

 private:
  static constexpr double max_share(int num_prompts) {
    return kMaxShareOfFirst + kMaxShareOfOther * (std::min(num_prompts, kMaxSharingPrompts) - 1);
  }

  double decode_step_s_ = 0;
  double prefill_token_s_ = 0;
  int num_decodes_measured_ = 0;  // of the last step of decodes alone
  int num_steps_since_ = 0;
};

}  // namespace pagoda
