#include "tensor/op_profile.h"

#include <algorithm>

namespace pagoda {
namespace {

bool runs_alike(const OpCall& a, const OpCall& b) {
  return a.op == b.op && a.format == b.format && a.rows == b.rows && a.cols == b.cols;
}

}  // namespace

void OpProfile::begin_step(StepPhase phase) {
  const std::lock_guard lock(mutex_);
  current_ = phase;
  step_start_ = Clock::system().now();
}

void OpProfile::end_step() {
  const Clock::TimePoint now = Clock::system().now();
  const std::lock_guard lock(mutex_);
  PhaseTotals& totals = phases_[static_cast<std::size_t>(current_)];
  ++totals.num_steps;
  totals.seconds += seconds_between(step_start_, now);
}

void OpProfile::add(const OpCall& call, double seconds) {
  const std::lock_guard lock(mutex_);
  auto found = std::find_if(ops_.begin(), ops_.end(), [&](const OpTotals& totals) {
    return totals.phase == current_ && runs_alike(totals.call, call);
  });
  if (found == ops_.end()) {
    found = ops_.insert(ops_.end(), {.call = call, .phase = current_});
    found->call.read_bytes = found->call.products = 0;
  }
  ++found->num_calls;
  found->seconds += seconds;
  found->call.read_bytes += call.read_bytes;
  found->call.products += call.products;
}

void OpProfile::clear() {
  const std::lock_guard lock(mutex_);
  ops_.clear();
  for (PhaseTotals& totals : phases_) totals = {};
}

std::vector<OpTotals> OpProfile::ops() const {
  std::vector<OpTotals> ops;
  {
    const std::lock_guard lock(mutex_);
    ops = ops_;
  }
  std::sort(ops.begin(), ops.end(), [](const OpTotals& a, const OpTotals& b) {
    return a.phase != b.phase ? a.phase < b.phase : a.seconds > b.seconds;
  });
  return ops;
}

PhaseTotals OpProfile::phase(StepPhase phase) const {
  const std::lock_guard lock(mutex_);
  return phases_[static_cast<std::size_t>(phase)];
}

}  // namespace pagoda
