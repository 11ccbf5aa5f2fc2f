#include "serving/answer_budget.h"

namespace pagoda {

HeldAnswer::~HeldAnswer() {
  const std::lock_guard lock(budget_->mutex_);
  budget_->num_bytes_ -= num_bytes_;
}

Status HeldAnswer::grow(std::int64_t num_bytes) {
  const std::lock_guard lock(budget_->mutex_);
  const std::int64_t limit = budget_->limit_;
  if (num_bytes > limit - num_bytes_) {
    return invalid_argument(
        "expected an answer of at most {} MB, got a larger one: ask for fewer samples, tokens or "
        "log-probabilities, or for a stream",
        limit >> 20);
  }
  const bool is_small = num_bytes_ + num_bytes <= kSmallAnswerBytes;
  if (!is_small && num_bytes > limit - budget_->num_bytes_) {
    return resource_exhausted(
        "all answers that wait for their clients take {} MB: ask again later, or for a stream",
        limit >> 20);
  }
  num_bytes_ += num_bytes;
  budget_->num_bytes_ += num_bytes;
  return ok_status();
}

void HeldAnswer::release(std::int64_t num_bytes) {
  const std::lock_guard lock(budget_->mutex_);
  num_bytes_ -= num_bytes;
  budget_->num_bytes_ -= num_bytes;
}

}  // namespace pagoda
