// StepCost: estimates the cost of decodes and of prompt tokens from measured steps. From it follows
// how many prompt tokens may be computed in a step with decodes.
//
// A step with decodes and t prompt tokens takes d + p * (g + t) seconds: d for the decodes, p per
// prompt token. g is the fixed cost of a chunk, counted in tokens: more rows in each product, and
// the prompt's keys and values to read. g may be larger than t if a short chunk has a long context.
// d is the median of the last three steps with only decodes. So one stall of the machine does not
// change it, and a new load is known after two steps. p and g are fitted to the steps with prompt
// tokens by least squares, and recent steps weigh more. Each measured time is limited to between
// half and twice the expected one. Steps of equal length do not determine g: it keeps its value
// then. In an engine's first steps with prompt tokens the system is still paging in memory. So
// among the first eight of them, one that is faster than expected replaces all before it. (Chunks
// in steps with decodes: Agrawal et al., "Sarathi-Serve", OSDI 2024, with a constant length that is
// found offline.)
//
// The time for prompts in a step with decodes grows with the number of prompts that wait for their
// first token. The first one adds the time of one decode step, each other one that of two and a
// half. A single prompt slows decodes little, and the more prompts wait, the larger their share is.
// With a fixed share prompts would queue up until one sequence decodes alone while all others wait.
// One decode a step is the worst use of a machine. The share of six prompts is nine tenths of a step.
// It grows no further, because more would gain them a tenth at most.
//
// A function of the durations it is given: it reads no clock. Thread-compatible.
#pragma once

#include <algorithm>
#include <array>
#include <limits>

namespace pagoda {

class StepCost {
 public:
  // Most time for prompts in a step with decodes, in decode steps: for the first waiting prompt,
  // and for each other one.
  static constexpr double kMaxShareOfFirst = 1, kMaxShareOfOther = 2.5;
  // Share of that time for which chunks are planned. The rest is a reserve, because now and then a
  // step takes a tenth longer than the last one.
  static constexpr double kAimed = 0.87;
  static constexpr int kMaxSharingPrompts = 6;
  // After this many steps without one of only decodes, the next step has only decodes, because the
  // load may have changed.
  static constexpr int kRemeasureSteps = 32;
  static constexpr int kUnlimited = std::numeric_limits<int>::max();

  // Learns from a completed step. 0 seconds: it was not measured, and is ignored.
  void observe(int num_decodes, int num_prefill_tokens, double seconds);

  // Returns the most time that a step with decodes may take, in decode steps: 2 while one prompt
  // waits, 14.5 while six or more do.
  static constexpr double max_mixed_step(int num_prompts) { return 1 + max_share(num_prompts); }

  // Returns the most prompt tokens in a step with decodes, at least 1. num_prompts: prompts that
  // could use the step, at least 1.
  int max_prefill_tokens(int num_prompts) const;
  // Returns whether the next step should have only decodes, because their cost is unknown, old, or
  // was measured with far fewer decodes.
  bool wants_decodes_alone(int num_decodes) const;

  double decode_step_s() const { return decode_step_s_; }  // 0: unknown

 private:
  // Weighted means over steps with prompt tokens; recent steps weigh most.
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
  std::array<double, 3> last_decodes_{};  // seconds of the last steps with only decodes
  int num_decodes_measured_ = 0;          // in the last step with only decodes
  int num_steps_since_ = 0;               // steps since that one, up to kRemeasureSteps
  Prefills prefills_;
  int num_prefills_ = 0;     // steps with prompt tokens, up to kFirstPrefills
  double first_tokens_ = 0;  // g
};

}  // namespace pagoda
