// The error message for a wrong command line, in a user's words, on one line.
#pragma once

#include <optional>
#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace pagoda {

// Returns why `app` did not parse: names the argument, what was expected and what was given.
std::string usage_error(const CLI::App& app, const CLI::ParseError& error);

// Returns the error for "--flag=" without a value: the parser would take the next argument as its
// value. Returns nothing if there is no such argument.
std::optional<std::string> empty_value_error(const CLI::App& app, int argc,
                                             const char* const* argv);

// Returns the error for a value that is not UTF-8, after `app` has parsed: values reach JSON and
// the log. Only paths may have other bytes.
std::optional<std::string> bytes_error(const CLI::App& app);

}  // namespace pagoda
