// RepeatedCallGuard: ends an answer of calls alone after a call that equals an earlier one. Small
// models would write the same call until the grammar allows no more.
#pragma once

#include <cstddef>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "answer/answer_parser.h"
#include "core/token_mask_source.h"
#include "text/tokenizer.h"

namespace pagoda {

// Thread-compatible.
class RepeatedCallGuard final : public TokenMaskSource {
 public:
  // Makes a guard of an answer at its beginning. `parsing`: how the answer is read. `inner`: its
  // grammar.
  RepeatedCallGuard(std::shared_ptr<const Tokenizer> tokenizer, std::vector<int> eos_token_ids,
                    AnswerParserOptions parsing, std::unique_ptr<TokenMaskSource> inner);

  std::unique_ptr<TokenMaskSource> clone() const override;
  Status fill_mask(std::span<std::uint32_t> bits) override;
  bool is_mask_near() const override { return inner_->is_mask_near(); }
  bool wait_for_mask(Clock::TimePoint deadline) override { return inner_->wait_for_mask(deadline); }
  Status accept(int token_id) override;
  bool is_stopped() const override { return inner_->is_stopped(); }

 private:
  void follow(const std::string& text);

  std::shared_ptr<const Tokenizer> tokenizer_;
  std::vector<int> eos_token_ids_;
  AnswerParserOptions parsing_;
  std::unique_ptr<TokenMaskSource> inner_;
  AnswerParser parser_;
  std::string text_;             // the answer so far
  std::string call_;             // the open call: its name, a zero byte and its arguments
  std::set<std::size_t> calls_;  // hashes of the calls before it
  bool has_repeated_ = false;
  bool is_ending_ = false;  // the latest mask had the answer's end alone
};

}  // namespace pagoda
