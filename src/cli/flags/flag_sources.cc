#include "cli/flags/flag_sources.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <iterator>
#include <optional>
#include <set>
#include <sstream>

#include "cli/flags/prompt_text.h"
#include "core/nearest_name.h"

namespace pagoda {
namespace {

constexpr std::string_view kCommand = "serve";
constexpr std::string_view kConfigFlag = "--config";
// The variable of --api-key has its own rules (api_keys.h).
constexpr std::string_view kKeyFlag = "api-key";
constexpr std::string_view kVariablePrefix = "PAGODA_";
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// Variables that are not flags, without the prefix: those that this process reads, and those that
// other files of the project read.
constexpr std::string_view kOtherVariables[] = {"API_KEY", "CPU_ISA", "MODEL_DIR",
                                                "MODEL",   "PYTHON",  "RUST"};

// Returns the long flag names in `arguments`, without dashes and values.
std::set<std::string> names_given(const std::vector<std::string>& arguments) {
  std::set<std::string> names;
  for (const std::string& argument : arguments) {
    if (!argument.starts_with("--") || argument.size() == 2) continue;
    names.insert(argument.substr(2, argument.find('=') - 2));
  }
  return names;
}

std::optional<std::string> config_file(const std::vector<std::string>& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == kConfigFlag && i + 1 < arguments.size()) return arguments[i + 1];
    const std::string prefix = std::string(kConfigFlag) + "=";
    if (arguments[i].starts_with(prefix)) return arguments[i].substr(prefix.size());
  }
  return {};
}

// Appends a flag in the form of a command line; a switch is appended by its name if it is on.
Status append_flag(const CLI::Option& option, const std::string& source,
                   const std::vector<std::string>& values, std::vector<std::string>& arguments) {
  const std::string name = "--" + option.get_lnames().front();
  const bool is_switch = option.get_items_expected_max() == 0;
  for (const std::string& value : values) {
    if (!is_switch) {
      if (value.empty()) return invalid_argument("{}: expected a value", source);
      arguments.push_back(name + "=" + value);
    } else if (value == "true" || value == "1") {
      arguments.push_back(name);
    } else if (value != "false" && value != "0") {
      return invalid_argument("{}: expected true or false, got {}", source, value);
    }
  }
  return ok_status();
}

bool takes_several(const CLI::Option& option) {
  return option.get_items_expected_max() > 1;
}

std::vector<std::string> values_of(const CLI::Option& option, const std::string& text) {
  if (!takes_several(option)) return {text};
  std::vector<std::string> values;
  std::istringstream list(text);
  for (std::string value; std::getline(list, value, ',');) values.push_back(value);
  return values;
}

Status add_environment(const CLI::App& command, const Environment& environment,
                       std::set<std::string>& given, std::vector<std::string>& arguments) {
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_lnames().empty()) continue;
    const std::string& flag = option->get_lnames().front();
    if (flag == "help" || flag == kKeyFlag || "--" + flag == kConfigFlag) continue;
    const char* value = environment(variable_of(flag));
    if (value == nullptr || given.contains(flag)) continue;
    PAGODA_RETURN_IF_ERROR(
        append_flag(*option, variable_of(flag), values_of(*option, value), arguments));
    given.insert(flag);
  }
  return ok_status();
}

Result<std::vector<CLI::ConfigItem>> read_items(const std::string& file) {
  PAGODA_ASSIGN_OR_RETURN(std::string text, read_prompt_text(std::string(kConfigFlag), file));
  // Some editors write a byte-order mark.
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  std::istringstream stream(text);
  try {
    return CLI::ConfigTOML().from_config(stream);
  } catch (const CLI::Error& error) {
    return invalid_argument("{}: {}", file, error.what());
  }
}

Status add_file(const CLI::App& command, const std::string& file,
                const std::set<std::string>& given, std::vector<std::string>& arguments) {
  PAGODA_ASSIGN_OR_RETURN(const std::vector<CLI::ConfigItem> items, read_items(file));
  for (const CLI::ConfigItem& item : items) {
    if (item.name == "++" || item.name == "--") continue;  // a section begins or ends
    const CLI::Option* option =
        item.parents.empty() ? command.get_option_no_throw("--" + item.name) : nullptr;
    if (option == nullptr || "--" + item.name == kConfigFlag)
      return invalid_argument("{}: '{}' is no flag of pagoda serve", file, item.fullname());
    if (given.contains(item.name)) continue;
    std::vector<std::string> values = item.inputs;
    if (values.size() == 1) values = values_of(*option, values.front());
    PAGODA_RETURN_IF_ERROR(append_flag(*option, file + ": " + item.name, values, arguments));
  }
  return ok_status();
}

}  // namespace

std::string variable_of(const std::string& flag) {
  std::string name(kVariablePrefix);
  for (const char c : flag)
    name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

Result<std::vector<std::string>> with_other_sources(const CLI::App& app,
                                                    std::vector<std::string> arguments,
                                                    const Environment& environment) {
  if (arguments.empty() || arguments.front() != kCommand) return arguments;
  const CLI::App& command = *app.get_subcommand(std::string(kCommand));
  std::set<std::string> given = names_given(arguments);
  const auto file = config_file(arguments);
  PAGODA_RETURN_IF_ERROR(add_environment(command, environment, given, arguments));
  if (file) PAGODA_RETURN_IF_ERROR(add_file(command, *file, given, arguments));
  return arguments;
}

std::vector<std::string> mistyped_variables(const CLI::App& app, const char* const* variables) {
  // Names are compared without the prefix, which would make all of them similar.
  std::vector<std::string> known(std::begin(kOtherVariables), std::end(kOtherVariables));
  for (const CLI::Option* option : app.get_subcommand(std::string(kCommand))->get_options()) {
    for (const std::string& flag : option->get_lnames())
      known.push_back(variable_of(flag).substr(kVariablePrefix.size()));
  }
  std::vector<std::string> lines;
  for (; *variables != nullptr; ++variables) {
    std::string_view variable = *variables;
    if (!variable.starts_with(kVariablePrefix)) continue;
    variable.remove_prefix(kVariablePrefix.size());
    const std::string name(variable.substr(0, variable.find('=')));
    if (std::ranges::find(known, name) != known.end()) continue;
    // A name that is not similar to any may belong to another program, such as the tests.
    if (const auto nearest = nearest_name(name, known))
      lines.push_back(fmt::format(
          "{0}{1}: nothing reads this variable of the environment; did you mean {0}{2}?",
          kVariablePrefix, name, *nearest));
  }
  return lines;
}

}  // namespace pagoda
