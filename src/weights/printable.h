// Makes names from files safe to print in a message: one line, printable, of bounded length.
#pragma once

#include <string>
#include <string_view>

namespace pagoda {

// Replaces bytes that are not printable ASCII by '?'. A text longer than `max_bytes` is cut and
// ends in "...".
inline std::string printable(std::string_view text, std::size_t max_bytes = 80) {
  std::string line(text.substr(0, max_bytes));
  for (char& c : line) {
    if (c < 0x20 || c > 0x7e) c = '?';
  }
  if (text.size() > max_bytes) line += "...";
  return line;
}

}  // namespace pagoda
