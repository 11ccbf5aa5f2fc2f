// OpProfile: the cost of the ops in a model's steps: calls, seconds, bytes and products of each.
//
// An Exec has a profile if the user asked for it (`--profile`). Else it has none, and an op only
// tests for that. Calls count together if they have the same op, weights of the same shape and
// format, and the same phase. Only native backends run an op when it is called, so only they can be
// profiled.
#pragma once

#include <cstdint>
#include <mutex>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "tensor/exec.h"

namespace pagoda {

enum class StepPhase : std::uint8_t {
  kPrefill,  // the step computes prompt tokens, with or without decodes
  kDecode,   // one token per sequence
};
inline constexpr std::size_t kNumStepPhases = 2;

// One call, as the op itself describes it. The views point into static storage.
struct OpCall {
  std::string_view op;      // "linear"
  std::string_view format;  // of its weight: "Q4_1"; empty: it has none
  std::int64_t rows = 0;    // of its weight
  std::int64_t cols = 0;
  double read_bytes = 0;  // weights, keys, values and inputs, once each
  double products = 0;    // multiply-adds
};

struct OpTotals {
  OpCall call;  // the common fields of the calls; its bytes and products are sums
  StepPhase phase = StepPhase::kPrefill;
  std::int64_t num_calls = 0;
  double seconds = 0;
};

struct PhaseTotals {
  std::int64_t num_steps = 0;
  double seconds = 0;  // of whole steps, work outside of ops included
};

// Thread-safe: the engine's thread adds, others read.
class OpProfile {
 public:
  void begin_step(StepPhase phase);
  void end_step();  // of the step begun last; a failed step is not ended and not counted
  void add(const OpCall& call, double seconds);
  void clear();

  std::vector<OpTotals> ops() const;  // by phase, then the longest first
  PhaseTotals phase(StepPhase phase) const;

 private:
  mutable std::mutex mutex_;
  StepPhase current_ = StepPhase::kPrefill;
  Clock::TimePoint step_start_;
  std::vector<OpTotals> ops_;
  PhaseTotals phases_[kNumStepPhases];
};

// Times the rest of the block in which it is declared. `describe` is only called if there is a
// profile.
//
//   OpTimer timer(exec, [&] { return OpCall{...}; });
class OpTimer {
 public:
  template <typename Describe>
  OpTimer(Exec& exec, Describe&& describe) : exec_(exec.profile() == nullptr ? nullptr : &exec) {
    if (exec_ == nullptr) return;
    call_ = describe();
    begun_ = exec_->begin_op();
  }
  ~OpTimer() {
    if (exec_ != nullptr) exec_->end_op(begun_, call_);
  }
  OpTimer(const OpTimer&) = delete;
  OpTimer& operator=(const OpTimer&) = delete;

 private:
  Exec* exec_;  // null: nothing is timed
  OpCall call_;
  std::uint64_t begun_ = 0;
};

// Returns the bytes of a tensor's elements.
inline double bytes_of(const Tensor& tensor) {
  return static_cast<double>(tensor.num_elements()) *
         static_cast<double>(dtype_size(tensor.dtype()));
}

}  // namespace pagoda
