// Flags of `pagoda serve` from other sources than the command line. PAGODA_PORT=8080 in the
// environment is --port 8080, and a file that --config names has one flag per line, `port = 8080`.
// The command line overrides the environment, and the environment overrides the file.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/status.h"

namespace CLI {
class App;
}

namespace pagoda {

// Returns the value of a variable of the environment; null: it is not set.
using Environment = std::function<const char*(const std::string& name)>;

// Returns the name of a flag's variable: PAGODA_MAX_QUEUE for --max-queue.
std::string variable_of(const std::string& flag);

// Returns `arguments`, which begin after the program's name, and the flags that only other sources
// give, for the command line of `app`. A list is given as values with commas between them, in a
// file also as [a, b]. Arguments for other commands than `serve` are returned unchanged.
// kInvalidArgument: a file cannot be read, or has a line that is not a flag.
Result<std::vector<std::string>> with_other_sources(const CLI::App& app,
                                                    std::vector<std::string> arguments,
                                                    const Environment& environment);

// Returns a line for each variable PAGODA_... that nothing reads, if its name is similar to that of
// a variable that is read. `variables`: each NAME=VALUE, ended by a null, like environ.
std::vector<std::string> mistyped_variables(const CLI::App& app, const char* const* variables);

}  // namespace pagoda
