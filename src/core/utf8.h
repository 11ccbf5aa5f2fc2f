// UTF-8 by its bytes: what is well-formed, where characters begin, and where a text can be cut.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace pagoda {

// Returns whether a byte is the first byte of a character.
constexpr bool starts_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) != 0x80;
}

// Returns the offset of the first byte that is not part of well-formed UTF-8, or npos.
std::size_t find_invalid_utf8(std::string_view text);

// Returns the text with U+FFFD for each byte that is not part of well-formed UTF-8.
std::string as_utf8(std::string_view text);

// Returns how many characters begin in a text.
inline std::size_t num_characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), starts_character));
}

// Returns the whole characters in a text's first `most_bytes` bytes; end_of(): in its last ones.
inline std::string_view beginning_of(std::string_view text, std::size_t most_bytes) {
  if (text.size() <= most_bytes) return text;
  while (most_bytes > 0 && !starts_character(text[most_bytes])) --most_bytes;
  return text.substr(0, most_bytes);
}
inline std::string_view end_of(std::string_view text, std::size_t most_bytes) {
  if (text.size() <= most_bytes) return text;
  std::size_t from = text.size() - most_bytes;
  while (from < text.size() && !starts_character(text[from])) ++from;
  return text.substr(from);
}

}  // namespace pagoda
