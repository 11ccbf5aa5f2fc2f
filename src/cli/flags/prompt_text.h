// Texts that a command takes from a file or from standard input.
#pragma once

#include <string>

#include "core/status.h"

namespace pagoda {

// Returns the whole file, or standard input to its end if `path` is "-". The last line end of
// standard input is removed, since a shell's `echo` adds it. `flag` names the argument in errors.
// kNotFound: no such file; kDataLoss: more than 256 MiB.
Result<std::string> read_prompt_text(const std::string& flag, const std::string& path);

// Returns whether standard input is something other than a terminal.
bool is_text_piped_in();

}  // namespace pagoda
