// Texts that a command takes from a file or from standard input.
#pragma once

#include <string>

#include "core/status.h"

namespace pagoda {

// Returns the whole file, or standard input to its end where `path` is "-"; without standard
// input's last line end, which a shell's `echo` adds. `flag` names the argument in errors.
// kNotFound, kDataLoss: no such file, or more than 256 MiB.
Result<std::string> read_prompt_text(const std::string& flag, const std::string& path);

// Returns whether something else than a terminal is standard input.
bool is_text_piped_in();

}  // namespace pagoda
