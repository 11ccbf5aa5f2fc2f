// How a subcommand ends badly: one line on stderr.
#pragma once

#include "core/status.h"

namespace pagoda {

// Prints "pagoda: MESSAGE" and returns the exit code: 2 where something typed, or a
// file that was named, says what it must not (kInvalidArgument), 1 for the rest.
int report_error(const Status& status);

}  // namespace pagoda
