#include "serving/repeated_call_guard.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "serving/token_text.h"

namespace pagoda {

RepeatedCallGuard::RepeatedCallGuard(std::shared_ptr<const Tokenizer> tokenizer,
                                     std::vector<int> eos_token_ids, AnswerParserOptions parsing,
                                     std::unique_ptr<TokenMaskSource> inner)
    : tokenizer_(std::move(tokenizer)),
      eos_token_ids_(std::move(eos_token_ids)),
      parsing_(std::move(parsing)),
      inner_(std::move(inner)),
      parser_(parsing_) {}

std::unique_ptr<TokenMaskSource> RepeatedCallGuard::clone() const {
  auto copy =
      std::make_unique<RepeatedCallGuard>(tokenizer_, eos_token_ids_, parsing_, inner_->clone());
  copy->follow(text_);
  return copy;
}

// Leaves the answer's end alone in the mask after a repeated call, as soon as the grammar allows
// the end.
Status RepeatedCallGuard::fill_mask(std::span<std::uint32_t> bits) {
  PAGODA_RETURN_IF_ERROR(inner_->fill_mask(bits));
  if (!has_repeated_) return ok_status();
  std::vector<int> ends;
  std::copy_if(eos_token_ids_.begin(), eos_token_ids_.end(), std::back_inserter(ends),
               [&](int id) { return (bits[id / 32] >> (id % 32) & 1) != 0; });
  is_ending_ = !ends.empty();
  if (!is_ending_) return ok_status();
  std::ranges::fill(bits, 0);
  for (const int id : ends) bits[id / 32] |= std::uint32_t{1} << (id % 32);
  return ok_status();
}

Status RepeatedCallGuard::accept(int token_id) {
  const bool is_end = std::ranges::find(eos_token_ids_, token_id) != eos_token_ids_.end();
  if (is_ending_ && !is_end)
    return invalid_argument("[tools] token {} came where the calls end", token_id);
  PAGODA_RETURN_IF_ERROR(inner_->accept(token_id));
  follow(shown_text_of(*tokenizer_, token_id));
  return ok_status();
}

void RepeatedCallGuard::follow(const std::string& text) {
  text_ += text;
  for (const AnswerPart& part : parser_.push(text)) {
    if (part.kind == AnswerPart::Kind::kCall) call_ = part.text + '\0';
    if (part.kind == AnswerPart::Kind::kArguments) call_ += part.text;
    if (part.kind == AnswerPart::Kind::kCallEnd)
      has_repeated_ |= !calls_.insert(std::hash<std::string>()(call_)).second;
  }
}

}  // namespace pagoda
