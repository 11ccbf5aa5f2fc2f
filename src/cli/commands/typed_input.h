// Reads what a user of `pagoda chat` types: a message of one line or several, or a command.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace pagoda {

struct TypedInput {
  enum class Kind : std::uint8_t {
    kNothing,  // a blank line
    kMessage,
    kCommand,
    kUnfinished,  // the input ended, or was interrupted, before the closing quotes
  };
  Kind kind = Kind::kNothing;
  std::string text;     // the message, or what stands behind the command's name
  std::string command;  // its name, without the slash
};

// Reads the next input; returns nothing if there is no further line. A line that begins with a
// slash is a command. A line that begins with """ opens a message of several lines, and one that
// ends so closes it; text beside the quotes belongs to the message.
// read_line: returns a line without its end, or nothing at the input's end. Its argument tells
// whether the line goes on with a message.
std::optional<TypedInput> read_typed_input(
    const std::function<std::optional<std::string>(bool goes_on)>& read_line);

}  // namespace pagoda
