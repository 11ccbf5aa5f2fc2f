#include "serving/allowed_tokens.h"

namespace pagoda {

Status AllowedTokens::fill_mask(std::span<std::uint32_t> bits) {
  PAGODA_RETURN_IF_ERROR(grammar_->fill_mask(bits));
  const std::vector<std::uint32_t>& allowed = rules_->allowed_tokens;
  bool has_any = false;
  for (std::size_t i = 0; i < bits.size(); ++i) {
    bits[i] &= i < allowed.size() ? allowed[i] : 0;
    has_any |= bits[i] != 0;
  }
  if (has_any) return ok_status();
  return invalid_argument(
      "'allowed_token_ids': expected a token with which '{}' can go on, got none", grammar_field_);
}

}  // namespace pagoda
