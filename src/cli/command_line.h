// The command line as a whole: every subcommand, and what is said where it does not parse.
#pragma once

#include "cli/base/command.h"

namespace pagoda {

// Declares every subcommand. A flag that takes a list takes one value each time it is given, so
// that what follows it is never swallowed.
void add_commands(CLI::App& app, CommandBody& body);

// Runs what is asked for and returns the exit code, which is never 0 where stdout could not be
// written. Without arguments the help goes to stdout, with code 0, as cargo has it.
int run_command_line(int argc, const char* const* argv);

}  // namespace pagoda
