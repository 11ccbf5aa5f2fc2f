// CommandOutline: a command with its flags and its own commands, as the parser's definition has
// them. The man page and the shells' completions are written from it, so that neither can lack a
// flag or keep one that is gone.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace pagoda {

struct FlagOutline {
  std::vector<std::string> names;  // "-h" and "--help"; of a positional "MODEL"
  std::string help;
  std::string value;  // the kind of its value, as --help has it; empty: it takes none
  std::vector<std::string> choices;  // all values that there are; empty: any of that kind
  std::string default_value;         // empty: none is told
  bool is_path = false;              // of a file or a folder
  bool is_positional = false;
  bool is_required = false;
  bool may_be_repeated = false;
};

struct CommandOutline {
  std::string name;  // from the program's on: "pagoda bench serve"
  std::string help;
  std::vector<FlagOutline> flags;  // positionals too, in their order
  std::vector<CommandOutline> commands;

  std::string last_word() const { return name.substr(name.rfind(' ') + 1); }
};

// Returns the outline of a program, without commands that its help hides.
CommandOutline outline_of(const CLI::App& app);

// Returns a command and all below it, itself first; the pointers are into `command`.
std::vector<const CommandOutline*> with_all_below(const CommandOutline& command);

}  // namespace pagoda
