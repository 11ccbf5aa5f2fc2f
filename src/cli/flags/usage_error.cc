#include "cli/flags/usage_error.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string_view>
#include <vector>

#include "cli/flags/flag_values.h"
#include "core/nearest_name.h"
#include "core/utf8.h"

namespace pagoda {

namespace {

// Returns the innermost subcommand that was typed.
const CLI::App& chosen_command(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : chosen_command(*chosen.front());
}

// Returns a command's name with its parents: "pagoda bench serve" for `serve`.
std::string full_name(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return (parent == nullptr ? "" : full_name(*parent) + " ") + command.get_name();
}

std::vector<std::string> subcommand_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* each : command.get_subcommands(nullptr)) names.push_back(each->get_name());
  return names;
}

std::vector<std::string> flag_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string suggestion(std::string_view typed, const std::vector<std::string>& names) {
  const auto nearest = nearest_name(typed, names);
  return nearest ? fmt::format("; did you mean {}?", *nearest) : "";
}

std::string unexpected_argument(const CLI::App& command, const std::string& argument) {
  const std::vector<std::string> subcommands = subcommand_names(command);
  if (argument.size() > 1 && argument.starts_with('-')) {
    const std::string name = argument.substr(0, argument.find('='));
    return fmt::format("{}: expected a flag of `{}`, got none of them{}", name, full_name(command),
                       suggestion(name, flag_names(command)));
  }
  if (!subcommands.empty()) {
    return fmt::format("expected a subcommand: {}; got {}{}", listed(subcommands), argument,
                       suggestion(argument, subcommands));
  }
  return fmt::format(
      "{}: expected no further argument of `{}`; a text with spaces in it needs quotes", argument,
      full_name(command));
}

std::string missing_argument(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_required() || option->count() > 0) continue;
    return fmt::format("expected {}, got none; `{} --help` says more",
                       option->get_name(option->get_positional()), full_name(command));
  }
  return fmt::format("expected a subcommand: {}; got none", listed(subcommand_names(command)));
}

// Returns a clearer message for a wrong number of values. The parser's own message starts with the
// option's name.
std::string wrong_number_of_values(const CLI::App& command, const std::string& message) {
  const std::string name = message.substr(0, message.find(':'));
  const CLI::Option* option = command.get_option_no_throw(name);
  if (option == nullptr) return message;
  if (option->count() > 1)
    return fmt::format("{}: expected once, got {} times", name, option->count());
  return fmt::format("{}: expected a value, got none", name);
}

// Returns the message about a wrong value. A flag that takes a value checks it first, so the value
// is that of a flag without one.
std::string wrong_value(const CLI::App& command, const std::string& message) {
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() == 0 || option->get_items_expected_max() > 0) continue;
    const std::string& value = option->results().back();
    if (value != "true" && value != "false")
      return fmt::format("{}: expected no value, got {}", option->get_name(), value);
  }
  return message;
}

}  // namespace

std::string usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = chosen_command(app);
  // An argument that is left over gives an error named after the subcommand; its code tells the
  // kind.
  switch (static_cast<CLI::ExitCodes>(error.get_exit_code())) {
    case CLI::ExitCodes::RequiredError:
    case CLI::ExitCodes::ExtrasError: {
      const std::vector<std::string> extras = app.remaining(/*recurse=*/true);
      return extras.empty() ? missing_argument(command)
                            : unexpected_argument(command, extras.front());
    }
    case CLI::ExitCodes::ArgumentMismatch:
      return wrong_number_of_values(command, error.what());
    case CLI::ExitCodes::ConversionError:
      return wrong_value(command, error.what());
    default:
      return error.what();
  }
}

std::optional<std::string> bytes_error(const CLI::App& app) {
  for (const CLI::Option* option : chosen_command(app).get_options()) {
    if (may_be_path(option->get_type_name())) continue;
    for (const std::string& value : option->results()) {
      const std::size_t at = find_invalid_utf8(value);
      if (at != std::string::npos)
        return fmt::format("{}: expected UTF-8, got other bytes at offset {}",
                           option->get_name(option->get_positional()), at);
    }
  }
  return std::nullopt;
}

std::optional<std::string> empty_value_error(const CLI::App& app, int argc,
                                             const char* const* argv) {
  const CLI::App* command = &app;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--") break;
    for (const CLI::App* inner : command->get_subcommands(nullptr)) {
      if (inner->get_name() == argument) command = inner;
    }
    if (!argument.starts_with("--") || !argument.ends_with('=')) continue;
    const std::string name(argument.substr(0, argument.size() - 1));
    if (command->get_option_no_throw(name) != nullptr)
      return fmt::format("{}: expected a value after the =, got none", name);
  }
  return std::nullopt;
}

}  // namespace pagoda
