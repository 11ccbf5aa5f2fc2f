// CommandOutline: a command with its flags and its own commands, as defined for the parser. The man
// page and shell completions are written from it, so they have exactly the parser's flags.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace pagoda {

struct FlagOutline {
  std::vector<std::string> names;  // "-h" and "--help"; "MODEL" for a positional
  std::string help;
  std::string value;                 // the kind of its value, as in --help; empty: takes no value
  std::vector<std::string> choices;  // the allowed values; empty: any of that kind
  std::string default_value;         // empty: not shown
  bool is_path = false;              // the value is a file or a folder
  bool is_model = false;             // the value is a model of the store; is_path: or a file
  bool is_positional = false;
  bool is_required = false;
  bool may_be_repeated = false;
};

struct CommandOutline {
  std::string name;  // with all parents: "pagoda bench serve"
  std::string help;
  std::vector<FlagOutline> flags;  // positionals too, in their order
  std::vector<CommandOutline> commands;

  std::string last_word() const { return name.substr(name.rfind(' ') + 1); }
};

// Returns the outline of a program.
CommandOutline outline_of(const CLI::App& app);

// Returns a command, then all commands below it; the pointers are into `command`.
std::vector<const CommandOutline*> with_all_below(const CommandOutline& command);

}  // namespace pagoda
