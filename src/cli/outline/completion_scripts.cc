#include "cli/outline/completion_scripts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>

namespace pagoda {
namespace {

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at)) {
    text.replace(at, what.size(), by);
    at += by.size();
  }
  return text;
}

// Returns patterns for `case`: the names of all commands except the program itself.
std::string patterns_of_commands(const CommandOutline& program, std::string_view separator) {
  std::vector<std::string> names;
  for (const CommandOutline* command : with_all_below(program)) {
    if (command != &program) names.push_back("'" + command->name + "'");
  }
  return fmt::format("{}", fmt::join(names, separator));
}

// --- bash

std::string bash_case_of_values(const CommandOutline& command, const FlagOutline& flag) {
  std::vector<std::string> patterns;
  for (const std::string& name : flag.names)
    patterns.push_back("'" + command.name + " " + name + "'");
  std::string action = "return";
  if (flag.is_path) action = "_pagoda_files; return";
  if (!flag.choices.empty()) {
    action = fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$current\")); return",
                         fmt::join(flag.choices, " "));
  }
  return fmt::format("    {}) {} ;;\n", fmt::join(patterns, "|"), action);
}

std::string bash_case_of_command(const CommandOutline& command) {
  std::vector<std::string> words;
  std::string action;
  for (const CommandOutline& inner : command.commands) words.push_back(inner.last_word());
  for (const FlagOutline& flag : command.flags) {
    if (flag.is_positional) {
      if (flag.is_path) action += " files=1";
      if (flag.is_model) action += " models=1";
      words.insert(words.end(), flag.choices.begin(), flag.choices.end());
    } else {
      words.insert(words.end(), flag.names.begin(), flag.names.end());
    }
  }
  return fmt::format("    '{}') words='{}'{} ;;\n", command.name, fmt::join(words, " "), action);
}

// --- zsh

std::string zsh_quoted(const std::string& text) {
  return "'" + replaced(text, "'", "'\\''") + "'";
}

std::string zsh_function(const CommandOutline& command) {
  return "_" + replaced(command.name, " ", "_");
}

// Returns ":kind:action"; "" for a flag without a value.
std::string zsh_value(const FlagOutline& flag) {
  if (flag.value.empty()) return "";
  std::string action = " ";
  if (flag.is_path) action = "_files";
  if (flag.is_model) action = flag.is_path ? "_pagoda_models_or_files" : "_pagoda_models";
  if (!flag.choices.empty()) action = fmt::format("({})", fmt::join(flag.choices, " "));
  return fmt::format(":{}:{}", flag.is_positional ? flag.names[0] : flag.value, action);
}

// Returns one specification per name of a flag, as zsh requires. With each of the names the flag
// takes its value.
std::string zsh_specifications(const FlagOutline& flag) {
  if (flag.is_positional)
    return " \\\n    " + zsh_quoted((flag.is_required ? ":" : "::") + zsh_value(flag).substr(1));
  std::string help = replaced(flag.help, "\\", "\\\\");
  help = replaced(replaced(help, "[", "\\["), "]", "\\]");
  std::string all;
  for (const std::string& name : flag.names) {
    const std::string others =
        flag.may_be_repeated ? "*" : fmt::format("({})", fmt::join(flag.names, " "));
    const bool takes_value = !flag.value.empty();
    all += " \\\n    " + zsh_quoted(others + name + (takes_value ? "=" : "") + "[" + help + "]" +
                                    zsh_value(flag));
  }
  return all;
}

std::string zsh_leaf(const CommandOutline& command) {
  std::string text = zsh_function(command) + "() {\n  _arguments";
  for (const FlagOutline& flag : command.flags) text += zsh_specifications(flag);
  return text + "\n}\n\n";
}

std::string zsh_group(const CommandOutline& command) {
  std::string text = zsh_function(command) + "() {\n  local line state\n  _arguments -C";
  for (const FlagOutline& flag : command.flags) text += zsh_specifications(flag);
  text += " \\\n    '1: :->command' '*:: :->rest'\n  case $state in\n    command)\n";
  text += "      local -a commands=(\n";
  std::string branches;
  for (const CommandOutline& inner : command.commands) {
    text += "        " + zsh_quoted(inner.last_word() + ":" + inner.help) + "\n";
    branches += fmt::format("        {}) {} ;;\n", inner.last_word(), zsh_function(inner));
  }
  text += "      )\n      _describe command commands ;;\n    rest)\n      case $line[1] in\n";
  return text + branches + "      esac ;;\n  esac\n}\n\n";
}

// --- fish

std::string fish_quoted(const std::string& text) {
  return "'" + replaced(replaced(text, "\\", "\\\\"), "'", "\\'") + "'";
}

std::string fish_line(const CommandOutline& command, const std::string& what,
                      const std::string& help) {
  return fmt::format("complete -c pagoda -n '__pagoda_command_is {}' {} -d {}\n", command.name,
                     what, fish_quoted(help));
}

std::string fish_flag(const CommandOutline& command, const FlagOutline& flag) {
  std::string what;
  if (!flag.is_positional) {
    for (const std::string& name : flag.names)
      what += name.starts_with("--") ? "-l " + name.substr(2) + " " : "-s " + name.substr(1) + " ";
    if (!flag.value.empty()) what += flag.is_path ? "-r " : "-x ";
  }
  if (flag.is_path) what += "-F ";
  if (flag.is_model) what += "-a '(__pagoda_models)' ";
  if (!flag.choices.empty()) what += fmt::format("-a '{}' ", fmt::join(flag.choices, " "));
  if (what.empty()) return "";
  what.pop_back();
  return fish_line(command, what, flag.help);
}

}  // namespace

std::string bash_completions(const CommandOutline& program) {
  std::string values;
  std::string commands;
  for (const CommandOutline* command : with_all_below(program)) {
    commands += bash_case_of_command(*command);
    for (const FlagOutline& flag : command->flags) {
      if (!flag.is_positional && !flag.value.empty()) values += bash_case_of_values(*command, flag);
    }
  }
  return fmt::format(R"(# bash completion for pagoda, printed by `pagoda completions bash`.
_pagoda_files() {{
  local IFS=$'\n'
  compopt -o filenames 2>/dev/null
  COMPREPLY=($(compgen -f -- "$current"))
}}

# Offers models of the store. Colons divide words, so that hf:ORG/NAME comes as three of them; only
# what stands behind the last colon is replaced.
_pagoda_models() {{
  local at=$COMP_CWORD typed=${{COMP_WORDS[COMP_CWORD]}} before= name
  while ((at > 1)) && [[ ${{COMP_WORDS[at]}} == : || ${{COMP_WORDS[at-1]}} == : ]]; do
    at=$((at - 1))
    typed=${{COMP_WORDS[at]}}$typed
  done
  [[ $COMP_WORDBREAKS == *:* ]] && before=${{typed%"${{typed##*:}}"}}
  while IFS= read -r name; do
    [[ $name == "$typed"* ]] && COMPREPLY+=("${{name#"$before"}}")
  done < <("${{COMP_WORDS[0]}}" list --names 2>/dev/null)
}}

_pagoda() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}
  local command=pagoda words= files= models= word
  COMPREPLY=()
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$command $word" in
      {}) command="$command $word" ;;
    esac
  done
  # --flag=value comes as three words.
  if [[ $current == = ]]; then
    current=
  elif [[ $previous == = ]]; then
    previous=${{COMP_WORDS[COMP_CWORD-2]}}
  fi
  case "$command $previous" in
{}  esac
  case "$command" in
{}  esac
  if [[ ($files || $models) && $current != -* ]]; then
    [[ $files ]] && _pagoda_files; [[ $models ]] && _pagoda_models
  else
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  fi
}}

complete -F _pagoda pagoda
)",
                     patterns_of_commands(program, "|"), values, commands);
}

std::string zsh_completions(const CommandOutline& program) {
  std::string text =
      "#compdef pagoda\n# zsh completion for pagoda, printed by `pagoda completions zsh`.\n\n"
      "_pagoda_models() {\n  local -a models=(${(f)\"$(pagoda list --names 2>/dev/null)\"})\n"
      "  compadd -a models\n}\n\n"
      "_pagoda_models_or_files() {\n"
      "  _alternative 'models:model:_pagoda_models' 'files:file:_files'\n}\n\n";
  for (const CommandOutline* command : with_all_below(program))
    text += command->commands.empty() ? zsh_leaf(*command) : zsh_group(*command);
  // If zsh autoloads the file, it is the function's body; if it is sourced, it registers the
  // function.
  return text +
         "if [[ $zsh_eval_context[-1] == loadautofunc ]]; then\n  _pagoda \"$@\"\nelse\n"
         "  compdef _pagoda pagoda\nfi\n";
}

std::string fish_completions(const CommandOutline& program) {
  std::string text =
      fmt::format(R"(# fish completion for pagoda, printed by `pagoda completions fish`.
function __pagoda_command_is
    set -l command pagoda
    for word in (commandline -opc)[2..-1]
        switch "$command $word"
            case {}
                set command "$command $word"
        end
    end
    test "$command" = "$argv"
end

function __pagoda_models
    pagoda list --names 2>/dev/null
end

complete -c pagoda -f
)",
                  patterns_of_commands(program, " "));
  for (const CommandOutline* command : with_all_below(program)) {
    for (const CommandOutline& inner : command->commands)
      text += fish_line(*command, "-a " + inner.last_word(), inner.help);
    for (const FlagOutline& flag : command->flags) text += fish_flag(*command, flag);
  }
  return text;
}

}  // namespace pagoda
