#include "text/token_bound.h"

#include <algorithm>

#include "core/utf8.h"

namespace pagoda {
namespace {

// Ordinary text has 3 to 5 bytes a token. A text with at most 8 bytes for each allowed token is not
// checked here, so that ordinary text that fits is tokenised only once.
constexpr std::size_t kSuspectBytesPerToken = 8;
constexpr std::size_t kMinPieceBytes = 4 << 10;
constexpr std::size_t kMaxPieceBytes = 64 << 10;
constexpr std::size_t kMaxWordBytes = 256;  // how far to search for the start of a word
constexpr int kMaxCharBytes = 4;
constexpr int kTokensOfACut = 32;  // more tokens than a cut can add

bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

// Returns the end of a piece of about `size` bytes. It is before the single space in front of a
// word, where nearly every pre-tokenizer cuts, else between two characters.
std::size_t find_cut(std::string_view text, std::size_t size) {
  if (size >= text.size()) return text.size();
  for (std::size_t at = size; at > size - kMaxWordBytes; --at) {
    if (at + 1 == text.size() || text[at] != ' ') continue;
    if (!is_space(text[at - 1]) && !is_space(text[at + 1])) return at;
  }
  for (int i = 0; i < kMaxCharBytes - 1 && !starts_character(text[size]); ++i) --size;
  return size;
}

}  // namespace

Result<bool> surely_exceeds(const Tokenizer& tokenizer, std::string_view utf8, int max_tokens) {
  const auto limit = static_cast<std::size_t>(std::max(max_tokens, 0));
  if (utf8.size() <= kSuspectBytesPerToken * limit) return false;
  const std::size_t piece_bytes = std::clamp(2 * limit, kMinPieceBytes, kMaxPieceBytes);
  std::size_t num_tokens = 0;
  for (std::string_view rest = utf8; !rest.empty();) {
    const std::size_t cut = find_cut(rest, piece_bytes);
    PAGODA_ASSIGN_OR_RETURN(const std::vector<int> ids,
                            tokenizer.encode(rest.substr(0, cut), {.add_special_tokens = false}));
    num_tokens += ids.size() - std::min<std::size_t>(ids.size(), kTokensOfACut);
    if (num_tokens > limit) return true;
    rest.remove_prefix(cut);
  }
  return false;
}

}  // namespace pagoda
