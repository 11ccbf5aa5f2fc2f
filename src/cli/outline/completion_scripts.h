// Scripts with which shells complete commands and flags, and values that are a few words or files.
#pragma once

#include <string>

#include "cli/outline/command_outline.h"

namespace pagoda {

// Returns a script for bash 3.2 or newer, for the user to source.
std::string bash_completions(const CommandOutline& program);
// Returns a file named _PROGRAM for a folder of zsh's `fpath`.
std::string zsh_completions(const CommandOutline& program);
// Returns a file named PROGRAM.fish for a folder of fish's `fish_complete_path`.
std::string fish_completions(const CommandOutline& program);

}  // namespace pagoda
