// LineEditor: reads lines that a user types and edits with the keys of libedit
// (https://thrysoee.dk/editline), which also recall earlier lines. ~/.editrc may bind other keys.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/status.h"

namespace pagoda {

// Returns the history file of `name`: $XDG_STATE_HOME/pagoda/NAME_history, or the same below
// ~/.local/state; "" if neither folder is known.
std::filesystem::path default_history_file(const std::string& name);

// Lines that do not come from a terminal are read as they are. Not thread-safe; one at a time.
class LineEditor {
 public:
  // Reads the history in `history_file`, if it exists; "": there is no file. `is_interrupted` is
  // polled while a read waits for the terminal: a signal just before the wait does not end the
  // wait.
  LineEditor(std::filesystem::path history_file, std::function<bool()> is_interrupted);
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;
  ~LineEditor();

  // Returns whether a user types at a terminal. Only then is anything prompted or kept.
  bool is_terminal() const { return terminal_ != nullptr; }

  // Reads a line, without its end. The prompt is "> ", or "... " if the line goes on with a text.
  // Returns nothing if the input ended or the wait was interrupted.
  std::optional<std::string> read(bool goes_on);

  // Adds a line to the history, for the next read() and in the file, which only its owner can read.
  // The file has the last thousand lines. Errors: the file cannot be written.
  Status keep(const std::string& line);

 private:
  class Terminal;

  const std::filesystem::path history_file_;
  const std::function<bool()> is_interrupted_;
  std::unique_ptr<Terminal> terminal_;  // null: the input is no terminal
};

}  // namespace pagoda
