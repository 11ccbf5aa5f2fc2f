#pragma once

namespace pagoda {

// Says whether a byte is white space as JSON and templates have it.
inline bool is_white_space(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

}  // namespace pagoda
