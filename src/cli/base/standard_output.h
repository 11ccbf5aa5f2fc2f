// Writes to standard output, for terminals and for programs.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace pagoda {

// Returns `utf8` with its control characters written as in JSON (\u001b), except new lines and
// tabs. A model's text must not move a terminal's cursor, change its title or type into it.
std::string without_controls(std::string_view utf8);

// Writes text of a model, which ends with a whole character, and flushes it. If `out` is a
// terminal, it gets without_controls() of the text. If `out` is stdout and whatever read it has
// ended, the process ends by SIGPIPE, so that no answer goes on unread.
void write_answer(std::FILE* out, std::string_view utf8);

// Flushes stdout and returns the program's exit code: `code`, but kExitFailure if `code` is kExitOk
// and something could not be written. A line on stderr tells such a failure; if the reader of a
// pipe has ended, the process ends by SIGPIPE instead, as other tools do.
int close_standard_output(int code);

}  // namespace pagoda
