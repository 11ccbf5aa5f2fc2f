#include "serving/request_memory.h"

namespace pagoda {

std::shared_ptr<MemoryAccount> MemoryAccount::of_body(std::shared_ptr<RequestMemory> budget) {
  const std::int64_t limit = limit_of_bodies(budget->limit_);
  return std::shared_ptr<MemoryAccount>(new MemoryAccount(std::move(budget), limit));
}

Status MemoryAccount::take(std::int64_t num_bytes, bool is_sure) {
  const std::lock_guard lock(budget_->mutex_);
  const bool is_small = is_sure || num_bytes_ + num_bytes <= kSmallAccountBytes;
  if (!is_sure && num_bytes > limit_ - num_bytes_) {
    return invalid_argument(
        "expected an answer of at most {} MB, got a larger one: ask for fewer samples, tokens or "
        "log-probabilities, or for a stream",
        limit_ >> 20);
  }
  if (!is_small && num_bytes > limit_ - budget_->num_bytes_) {
    return unavailable(
        "requests and answers that wait for their clients take {} MB together: ask again later, or "
        "for less",
        budget_->limit_ >> 20);
  }
  num_bytes_ += num_bytes;
  budget_->num_bytes_ += num_bytes;
  return ok_status();
}

void MemoryAccount::give_back(std::int64_t num_bytes) {
  const std::lock_guard lock(budget_->mutex_);
  num_bytes_ -= num_bytes;
  budget_->num_bytes_ -= num_bytes;
}

Status HeldBytes::take(std::int64_t num_bytes, bool is_sure) {
  PAGODA_RETURN_IF_ERROR(answer_->take(num_bytes, is_sure));
  num_bytes_ += num_bytes;
  return ok_status();
}

void HeldBytes::release(std::int64_t num_bytes) {
  if (num_bytes > 0) answer_->give_back(num_bytes);
  num_bytes_ -= num_bytes;
}

Status HeldBytes::resize(std::int64_t num_bytes) {
  if (num_bytes > num_bytes_) return grow(num_bytes - num_bytes_);
  release(num_bytes_ - num_bytes);
  return ok_status();
}

Result<SharedText> HeldText::make(std::shared_ptr<MemoryAccount> answer, std::string text) {
  HeldBytes bytes(std::move(answer));
  const auto num_bytes = std::ssize(text);
  PAGODA_RETURN_IF_ERROR(bytes.take(num_bytes, num_bytes <= kSmallTextBytes));
  return SharedText(new HeldText(std::move(bytes), std::move(text)));
}

SharedText HeldText::for_good(std::string text) {
  HeldBytes none(std::make_shared<MemoryAccount>(std::make_shared<RequestMemory>()));
  return SharedText(new HeldText(std::move(none), std::move(text)));
}

}  // namespace pagoda
