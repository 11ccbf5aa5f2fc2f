// Flags of `pagoda serve` from elsewhere than the command line: PAGODA_PORT=8080 of the environment
// is --port 8080, and a file that --config names has a line a flag, `port = 8080`. The command line
// goes before the environment, and the environment before the file.
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

// Returns `arguments` (behind the program's name) with the flags that they leave to the other
// sources, for the command line of `app`. A list is given as values with commas between them, in a
// file also as [a, b]. Other commands than `serve` come back as they are. kInvalidArgument: a file
// that cannot be read, or with a line that is no flag's.
Result<std::vector<std::string>> with_other_sources(const CLI::App& app,
                                                    std::vector<std::string> arguments,
                                                    const Environment& environment);

// Returns a line for each variable PAGODA_... that nothing reads and whose name is near that of one
// that is read. `variables`: NAME=VALUE each, a null behind the last, as environ has them.
std::vector<std::string> mistyped_variables(const CLI::App& app, const char* const* variables);

}  // namespace pagoda
