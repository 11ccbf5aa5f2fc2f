#include "core/utf8.h"

#include <cstdint>
#include <cstring>

namespace pagoda {
namespace {

// Returns whether the eight bytes at `text` are ASCII.
bool are_ascii(const char* text) {
  std::uint64_t word;
  std::memcpy(&word, text, sizeof(word));
  return (word & 0x8080808080808080) == 0;
}

// Returns the length in bytes of the well-formed character at the start of `text` (Unicode's table
// 3-7), or 0 if there is none.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const auto continues = [&](std::size_t i, std::uint8_t low = 0x80, std::uint8_t high = 0xbf) {
    return i < text.size() && byte(i) >= low && byte(i) <= high;
  };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return continues(1) ? 2 : 0;
  if (lead >= 0xe0 && lead <= 0xef) {
    const std::uint8_t low = lead == 0xe0 ? 0xa0 : 0x80;
    const std::uint8_t high = lead == 0xed ? 0x9f : 0xbf;  // no surrogates
    return continues(1, low, high) && continues(2) ? 3 : 0;
  }
  if (lead >= 0xf0 && lead <= 0xf4) {
    const std::uint8_t low = lead == 0xf0 ? 0x90 : 0x80;
    const std::uint8_t high = lead == 0xf4 ? 0x8f : 0xbf;
    return continues(1, low, high) && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

std::size_t find_invalid_utf8(std::string_view text) {
  std::size_t offset = 0;
  while (offset < text.size()) {
    while (text.size() - offset >= 8 && are_ascii(text.data() + offset)) offset += 8;
    if (offset == text.size()) break;
    const std::size_t length = utf8_length(text.substr(offset));
    if (length == 0) return offset;
    offset += length;
  }
  return std::string_view::npos;
}

std::string as_utf8(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t num_good = std::min(find_invalid_utf8(text), text.size());
    result += text.substr(0, num_good);
    text.remove_prefix(num_good);
    if (text.empty()) break;
    result += "\uFFFD";
    text.remove_prefix(1);
  }
  return result;
}

}  // namespace pagoda
