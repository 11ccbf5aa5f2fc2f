// Reports the error of a subcommand: one line on stderr.
#pragma once

#include "core/status.h"

namespace pagoda {

// Prints "pagoda: MESSAGE" to stderr. Returns the exit code: 2 for kInvalidArgument (a wrong
// argument, or a wrong value in a file that an argument names), 1 for all other errors.
int report_error(const Status& status);

}  // namespace pagoda
