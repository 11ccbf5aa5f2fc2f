// The manual page, in the macros of man(7).
#pragma once

#include <string>

#include "cli/outline/command_outline.h"

namespace pagoda {

// Returns the page of all commands and flags.
std::string man_page(const CommandOutline& program, const std::string& version);

}  // namespace pagoda
