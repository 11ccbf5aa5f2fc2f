// StepCost: what decodes and prompt tokens cost, from the steps measured, and so how long a chunk
// of a prompt may be beside decodes.
//
// A step with decodes and t prompt tokens takes d + p * (g + t) seconds. The first of the tokens
// brings with it what g others cost: more rows in each product, and a prompt's keys and values to
// read. g may be larger than t where the tokens are few and their context is long. Steps of decodes
// alone give d, the median of the last three: a stall of the machine changes nothing, a new load is
// known after two steps. Steps with prompt tokens give p and g by least squares. The last ones
// count more than those before them, and each as no more than twice and no less than half of what
// was expected. g stays what it was as far as these steps are of one length, which says nothing of
// it. An engine's first prompts wait for memory that the system has not given yet. So among its
// first eight steps with prompt tokens, one that is faster than expected counts alone. (Chunks
// beside decodes: Agrawal et al., "Sarathi-Serve", OSDI 2024, where their length is a constant
// found offline.)
//
// Each prompt that waits for its first token brings time with it: the first one a decode step, each
// other one two and a half. A single one changes the pace of those that decode little, and the more
// wait, the larger their share is. With a share for decodes that no queue changes, prompts would
// fall behind until all but one sequence wait. That one would decode alone, at the worst use of the
// machine. Past six prompts a step is theirs to nine tenths, and more would gain them a tenth at
// most.
//
// A function of the durations it is given: it reads no clock. Thread-compatible.
#pragma once

#include <algorithm>
#include <array>
#include <limits>

namespace pagoda {

class StepCost {
 public:
  // In decode steps, what waiting prompts have of a step with decodes at most: the first one, and
  // each other.
  static constexpr double kMaxShareOfFirst = 1, kMaxShareOfOther = 2.5;
  // The share of the budget that chunks are planned for: a step of a real machine takes a tenth
  // more than the last one did, now and then.
  static constexpr double kAimed = 0.87;
  static constexpr int kMaxSharingPrompts = 6;
  // So many steps after the last one of decodes alone, the next one is: loads change.
  static constexpr int kRemeasureSteps = 32;
  static constexpr int kUnlimited = std::numeric_limits<int>::max();

  // Learns from a step that is over; 0 seconds: it was not measured, and nothing is limited.
  void observe(int num_decodes, int num_prefill_tokens, double seconds);

  // Returns how many decode steps a step with decodes takes at most: 2 while one prompt waits, 14.5
  // while six or more do.
  static constexpr double max_mixed_step(int num_prompts) { return 1 + max_share(num_prompts); }

  // Returns the most prompt tokens beside decodes, from 1. num_prompts: that could use the step,
  // from 1.
  int max_prefill_tokens(int num_prompts) const;
  // Returns whether the estimate is missing, old, or of far fewer decodes than these: the next step
  // should be of decodes alone.
  bool wants_decodes_alone(int num_decodes) const;

  double decode_step_s() const { return decode_step_s_; }  // 0: unknown

 private:
  // Means over steps with prompt tokens, the last ones weighing most.
  struct Prefills {
    double tokens = 0;
    double seconds = 0;
    double tokens_squared = 0;
    double tokens_times_seconds = 0;
  };

  static constexpr double max_share(int num_prompts) {
    return kMaxShareOfFirst + kMaxShareOfOther * (std::min(num_prompts, kMaxSharingPrompts) - 1);
  }

  void add_decodes(double seconds);
  void add_prefill(double tokens, double seconds);
  double token_s() const { return prefills_.seconds / (prefills_.tokens + first_tokens_); }  // p

  double decode_step_s_ = 0;              // d
  std::array<double, 3> last_decodes_{};  // seconds of the last steps of decodes alone
  int num_decodes_measured_ = 0;          // of the last step of decodes alone
  int num_steps_since_ = 0;               // up to kRemeasureSteps
  Prefills prefills_;
  int num_prefills_ = 0;     // up to those called the first
  double first_tokens_ = 0;  // g
};

}  // namespace pagoda
