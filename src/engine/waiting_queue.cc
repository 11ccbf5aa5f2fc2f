#include "engine/waiting_queue.h"

namespace pagoda {

void WaitingQueue::insert(std::unique_ptr<Sequence> sequence) {
  num_forks_ += sequence->num_forks();
  insert_in_order(sequences_, std::move(sequence));
}

void WaitingQueue::count_forks() {
  num_forks_ = 0;
  for (const std::unique_ptr<Sequence>& sequence : sequences_) num_forks_ += sequence->num_forks();
}

std::unique_ptr<Sequence> WaitingQueue::pop() {
  const bool overtakes = head().priority() < sequences_.back()->priority();
  if (overtakes && num_steps_overtaking_ == 0) num_steps_overtaking_ = 1;
  std::unique_ptr<Sequence> sequence = std::move(sequences_.front());
  sequences_.pop_front();
  num_forks_ -= sequence->num_forks();
  return sequence;
}

std::optional<RequestId> WaitingQueue::end_turn() {
  const bool some_may_overtake = !empty() && head().priority() < sequences_.back()->priority();
  if (!some_may_overtake) num_steps_overtaking_ = 0;
  if (num_steps_overtaking_ == 0 || ++num_steps_overtaking_ <= num_steps_per_turn_)
    return std::nullopt;
  num_steps_overtaking_ = 0;
  const auto came_before = [](const auto& a, const auto& b) { return a->arrival() < b->arrival(); };
  return (*std::min_element(sequences_.begin(), sequences_.end(), came_before))->request_id();
}

}  // namespace pagoda
