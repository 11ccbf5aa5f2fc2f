// LineEditor: lines that a user types, with the keys of libedit (https://thrysoee.dk/editline) to
// edit them and to bring earlier ones back. ~/.editrc may bind other keys.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/status.h"

namespace pagoda {

// Returns the file of earlier lines of `name`: $XDG_STATE_HOME/pagoda/NAME_history, or below
// ~/.local/state; "" where neither is known.
std::filesystem::path default_history_file(const std::string& name);

// From what is no terminal, lines are read as they are. Not thread-safe; one at a time.
class LineEditor {
 public:
  // Reads the history in `history_file`, if it is there; "": lines are kept nowhere.
  // `is_interrupted` is asked while a terminal is waited for: a signal that comes just before the
  // wait does not end it.
  LineEditor(std::filesystem::path history_file, std::function<bool()> is_interrupted);
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;
  ~LineEditor();

  // Reads a line, without its end. Nothing: the input has ended, or the wait was interrupted.
  std::optional<std::string> read();

  // Keeps a line, for the next read() and in the file, which its owner alone can read; of many lines
  // the last thousand. Errors: the file cannot be written.
  Status keep(const std::string& line);

 private:
  class Terminal;

  const std::filesystem::path history_file_;
  const std::function<bool()> is_interrupted_;
  std::unique_ptr<Terminal> terminal_;  // null: the input is no terminal
};

}  // namespace pagoda
