#include "serving/thought_budget.h"

#include <algorithm>
#include <utility>

#include "serving/token_text.h"

namespace pagoda {

Result<std::shared_ptr<const TokenMaskSource>> ThoughtBudget::make(
    std::shared_ptr<const Tokenizer> tokenizer, const ThoughtBudgetOptions& options,
    const TokenMaskSource* inner) {
  auto made = std::shared_ptr<ThoughtBudget>(new ThoughtBudget());
  PAGODA_ASSIGN_OR_RETURN(made->end_ids_,
                          tokenizer->encode(options.marks.end, {.add_special_tokens = false}));
  if (made->end_ids_.empty())
    return invalid_argument("[thoughts] the tokenizer has no tokens for {}", options.marks.end);
  made->tokenizer_ = std::move(tokenizer);
  made->marks_ = options.marks;
  made->num_left_ = options.num_tokens;
  if (inner != nullptr) made->inner_ = inner->clone();
  if (options.begins_in_thought)
    made->state_ = made->num_left_ > 0 ? State::kThinking : State::kEnding;
  return std::shared_ptr<const TokenMaskSource>(std::move(made));
}

std::unique_ptr<TokenMaskSource> ThoughtBudget::clone() const {
  std::unique_ptr<ThoughtBudget> copy(new ThoughtBudget());
  copy->tokenizer_ = tokenizer_;
  copy->marks_ = marks_;
  copy->end_ids_ = end_ids_;
  copy->num_left_ = num_left_;
  copy->state_ = state_;
  copy->tail_ = tail_;
  copy->num_end_ids_ = num_end_ids_;
  if (inner_) copy->inner_ = inner_->clone();
  return copy;
}

Status ThoughtBudget::fill_mask(std::span<std::uint32_t> bits) {
  if (inner_) {
    PAGODA_RETURN_IF_ERROR(inner_->fill_mask(bits));
  } else {
    std::ranges::fill(bits, ~std::uint32_t{0});
  }
  if (state_ != State::kEnding) return ok_status();
  const int id = end_ids_[num_end_ids_];
  const std::uint32_t bit = std::uint32_t{1} << (id % 32);
  if ((bits[id / 32] & bit) == 0) {
    state_ = State::kFree;  // the grammar does not allow the end mark here
    return ok_status();
  }
  std::ranges::fill(bits, 0);
  bits[id / 32] = bit;
  return ok_status();
}

bool ThoughtBudget::is_mask_near() const {
  return !inner_ || inner_->is_mask_near();
}

bool ThoughtBudget::wait_for_mask(Clock::TimePoint deadline) {
  return !inner_ || inner_->wait_for_mask(deadline);
}

Status ThoughtBudget::accept(int token_id) {
  if (state_ == State::kEnding && token_id != end_ids_[num_end_ids_])
    return invalid_argument("[thoughts] token {} came where the thought ends", token_id);
  if (inner_) PAGODA_RETURN_IF_ERROR(inner_->accept(token_id));
  follow(token_id);
  return ok_status();
}

bool ThoughtBudget::is_stopped() const {
  return inner_ && inner_->is_stopped();
}

void ThoughtBudget::follow(int token_id) {
  switch (state_) {
    case State::kBeginning:
      return begin(shown_text_of(*tokenizer_, token_id));
    case State::kThinking:
      return think(shown_text_of(*tokenizer_, token_id));
    case State::kEnding:
      if (++num_end_ids_ == end_ids_.size()) state_ = State::kFree;
      return;
    case State::kFree:
      return;
  }
}

void ThoughtBudget::begin(const std::string& text) {
  tail_ += text;
  tail_.erase(0, std::min(tail_.find_first_not_of(" \t\r\n"), tail_.size()));
  if (tail_.starts_with(marks_.begin)) {
    state_ = num_left_ > 0 ? State::kThinking : State::kEnding;
    const std::string behind = tail_.substr(marks_.begin.size());
    tail_.clear();
    if (!behind.empty() && state_ == State::kThinking) think(behind);
  } else if (!std::string_view(marks_.begin).starts_with(tail_)) {
    state_ = State::kFree;
  }
}

// Counts a token of the thought, unless it completes the end mark.
void ThoughtBudget::think(const std::string& text) {
  tail_ += text;
  if (tail_.find(marks_.end) != std::string::npos) {
    state_ = State::kFree;
    return;
  }
  const std::size_t num_kept = std::min(tail_.size(), marks_.end.size() - 1);
  tail_.erase(0, tail_.size() - num_kept);
  if (--num_left_ <= 0) state_ = State::kEnding;
}

}  // namespace pagoda
