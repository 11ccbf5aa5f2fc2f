#include "cli/outline/command_outline.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "backend/backend.h"
#include "cli/flags/flag_values.h"

namespace pagoda {
namespace {

// Returns whether this is a device that this machine or this binary lacks.
bool is_absent(const std::string& device) {
  return std::any_of(kBackends.begin(), kBackends.end(), [&](Backend backend) {
    return backend_name(backend) == device && !backend_is_here(backend);
  });
}

FlagOutline outline_of_flag(const CLI::Option& option) {
  FlagOutline flag;
  for (const std::string& name : option.get_snames()) flag.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) flag.names.push_back("--" + name);
  flag.is_positional = flag.names.empty();
  if (flag.is_positional) flag.names.push_back(option.get_single_name());
  flag.help = option.get_description();
  flag.is_required = option.get_required();
  if (option.get_items_expected_max() == 0) return flag;
  // After one_of(), the type's name ends with the allowed values.
  const std::string type = option.get_type_name();
  const std::size_t end = std::min(type.find(':'), type.size());
  flag.value = end == 0 ? "TEXT" : type.substr(0, end);
  flag.is_path = may_be_path(flag.value);
  flag.is_model = flag.value == kModelType || flag.value == kStoredModelType;
  if (end < type.size()) flag.choices = names_listed(type.substr(end + 1));
  if (option.get_name() == "--device") std::erase_if(flag.choices, is_absent);
  flag.default_value = option.get_default_str();
  flag.may_be_repeated = option.get_items_expected_max() > 1;
  return flag;
}

CommandOutline outline_below(const CLI::App& app, const std::string& name) {
  CommandOutline command = {
      .name = name, .help = app.get_description(), .flags = {}, .commands = {}};
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_group().empty()) command.flags.push_back(outline_of_flag(*option));
  }
  for (const CLI::App* inner : app.get_subcommands(nullptr)) {
    command.commands.push_back(outline_below(*inner, name + " " + inner->get_name()));
  }
  return command;
}

}  // namespace

CommandOutline outline_of(const CLI::App& app) {
  return outline_below(app, app.get_name());
}

std::vector<const CommandOutline*> with_all_below(const CommandOutline& command) {
  std::vector<const CommandOutline*> all = {&command};
  for (const CommandOutline& inner : command.commands) {
    for (const CommandOutline* below : with_all_below(inner)) all.push_back(below);
  }
  return all;
}

}  // namespace pagoda
