// ThoughtBudget: ends a thought that has grown to as many tokens as it may have, by letting nothing
// but the mark follow that ends it. vLLM's thinking_token_budget does the same.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "answer/answer_format.h"
#include "core/token_mask_source.h"
#include "text/tokenizer.h"

namespace pagoda {

struct ThoughtBudgetOptions {
  int num_tokens = 0;  // that a thought may have between its marks
  ThoughtMarks marks;
  bool begins_in_thought = false;  // the prompt has begun it
};

// A thought begins with the answer or not at all, as AnswerParser reads it. Thread-compatible.
class ThoughtBudget final : public TokenMaskSource {
 public:
  // Makes one in its first state. `inner`: the grammar that holds the answer besides; null: none.
  // One that takes no end of a thought where it is due has its way.
  // kInvalidArgument where the tokenizer cannot spell the mark.
  static Result<std::shared_ptr<const TokenMaskSource>> make(
      std::shared_ptr<const Tokenizer> tokenizer, const ThoughtBudgetOptions& options,
      const TokenMaskSource* inner);

  std::unique_ptr<TokenMaskSource> clone() const override;
  Status fill_mask(std::span<std::uint32_t> bits) override;
  bool is_mask_near() const override;
  bool wait_for_mask(Clock::TimePoint deadline) override;
  Status accept(int token_id) override;
  bool is_stopped() const override;

 private:
  enum class State { kBeginning, kThinking, kEnding, kFree };

  ThoughtBudget() = default;
  std::string text_of(int token_id) const;
  void follow(int token_id);
  void begin(const std::string& text);
  void think(const std::string& text);

  std::shared_ptr<const Tokenizer> tokenizer_;
  ThoughtMarks marks_;
  std::vector<int> end_ids_;  // spell the mark
  int num_left_ = 0;          // tokens of the thought
  State state_ = State::kBeginning;
  std::string tail_;             // of the text: what may be a part of a mark
  std::size_t num_end_ids_ = 0;  // that have come
  std::unique_ptr<TokenMaskSource> inner_;
};

}  // namespace pagoda
