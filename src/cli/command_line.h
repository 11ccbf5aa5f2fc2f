// The whole command line: every subcommand, and the message if it does not parse.
#pragma once

#include "cli/base/command.h"

namespace pagoda {

// Declares every subcommand. A flag that takes a list takes one value each time it is given, so
// that it never takes the argument after that value.
void add_commands(CLI::App& app, CommandBody& body);

// Runs the command line and returns the exit code, which is never 0 if stdout could not be written.
// Without arguments it prints the help to stdout, with code 0, like cargo.
int run_command_line(int argc, const char* const* argv);

}  // namespace pagoda
