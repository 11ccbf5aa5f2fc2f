// ThoughtBudget: limits the tokens of a thought. At the limit it allows only the end mark. vLLM's
// thinking_token_budget does the same.
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
  int num_tokens = 0;  // the most tokens between the marks
  ThoughtMarks marks;
  bool begins_in_thought = false;  // the prompt ends inside a thought
};

// As in AnswerParser, only a thought at the start of the answer counts. Thread-compatible.
class ThoughtBudget final : public TokenMaskSource {
 public:
  // Makes a budget in its first state. `inner`: another grammar of the answer; null: none. If that
  // grammar does not allow the end mark at the limit, the thought is not ended. kInvalidArgument if
  // the tokenizer has no tokens for the mark.
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
  void follow(int token_id);
  void begin(const std::string& text);
  void think(const std::string& text);

  std::shared_ptr<const Tokenizer> tokenizer_;
  ThoughtMarks marks_;
  std::vector<int> end_ids_;  // tokens of the end mark
  int num_left_ = 0;          // remaining tokens of the thought
  State state_ = State::kBeginning;
  std::string tail_;             // end of the text; may be part of a mark
  std::size_t num_end_ids_ = 0;  // tokens of the end mark accepted so far
  std::unique_ptr<TokenMaskSource> inner_;
};

}  // namespace pagoda
