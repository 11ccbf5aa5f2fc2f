// Asks the user at the terminal.
#pragma once

#include <cstdint>
#include <string>

namespace pagoda {

enum class Confirmation : std::uint8_t {
  kYes,
  kNo,
  kNobody,  // the question was not asked: standard input or stderr is no terminal
};

// Prints the question and its choices on stderr and reads a line. An empty line is `by_default`, and
// the input's end is kNo.
Confirmation ask_user(const std::string& question, Confirmation by_default);

}  // namespace pagoda
