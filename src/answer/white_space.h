#pragma once

namespace pagoda {

// Returns whether a byte is white space in JSON and templates.
inline bool is_white_space(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

}  // namespace pagoda
