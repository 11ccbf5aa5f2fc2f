// Standard output as people and programs read it.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace pagoda {

// Returns `utf8` with its control characters as JSON writes them (\u001b), except new lines and
// tabs: a model's words shall not move a terminal's cursor, change its title or type into it.
std::string without_controls(std::string_view utf8);

// Writes what a model has said, whole characters of it, at once: as it is, and where `out` is a
// terminal without_controls().
void write_answer(std::FILE* out, std::string_view utf8);

// Writes what is left to write to stdout, and returns the program's exit code: `code`, or where
// that is kExitOk and something could not be written kExitFailure, after a line on stderr.
int close_standard_output(int code);

}  // namespace pagoda
