#include "cli/outline/man_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>

namespace pagoda {
namespace {

// Escapes text for the formatter. Hyphens stay ASCII, so that flags can be pasted into a shell.
std::string roff(std::string_view text) {
  std::string escaped;
  if (text.starts_with('.') || text.starts_with('\'')) escaped += "\\&";
  for (const char c : text) {
    switch (c) {
      case '\\':
        escaped += "\\e";
        break;
      case '-':
        escaped += "\\-";
        break;
      case '`':
      case '\'':
        escaped += c == '`' ? "\\(ga" : "\\(aq";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string bold(std::string_view text) {
  return "\\fB" + roff(text) + "\\fR";
}

std::string italic(std::string_view text) {
  return "\\fI" + roff(text) + "\\fR";
}

// Returns the text after a command's name: "[FLAGS] MODEL".
std::string arguments_of(const CommandOutline& command) {
  std::string text = " [" + italic("FLAGS") + "]";
  for (const FlagOutline& flag : command.flags) {
    if (!flag.is_positional) continue;
    text += flag.is_required ? " " + italic(flag.names[0]) : " [" + italic(flag.names[0]) + "]";
  }
  return text;
}

std::string paragraph_of(const FlagOutline& flag) {
  std::string text = ".TP\n";
  for (std::size_t i = 0; i < flag.names.size(); ++i) {
    if (i > 0) text += ", ";
    text += flag.is_positional ? italic(flag.names[i]) : bold(flag.names[i]);
  }
  if (!flag.is_positional && !flag.value.empty()) text += " " + italic(flag.value);
  if (flag.may_be_repeated) text += " ...";
  text += "\n" + roff(flag.help) + ".\n";
  if (!flag.choices.empty())
    text += roff(fmt::format("One of {}.", fmt::join(flag.choices, ", "))) + "\n";
  if (!flag.default_value.empty()) text += roff("Default: " + flag.default_value + ".") + "\n";
  return text;
}

std::string section_of(const CommandOutline& command) {
  std::string text = ".SS " + bold(command.name) + arguments_of(command) + "\n";
  text += roff(command.help) + ".\n";
  for (const FlagOutline& flag : command.flags) text += paragraph_of(flag);
  return text;
}

}  // namespace

std::string man_page(const CommandOutline& program, const std::string& version) {
  std::string text =
      fmt::format(".TH PAGODA 1 \"\" \"pagoda {}\" \"User Commands\"\n", roff(version));
  text += ".SH NAME\npagoda \\- serve, run and measure language models\n";
  text += ".SH SYNOPSIS\n" + bold("pagoda") + " " + italic("COMMAND") + " [" + italic("FLAGS") +
          "] [" + italic("ARGUMENTS") + "]\n";
  text += ".SH DESCRIPTION\n" + roff(program.help) + "\n";
  for (const FlagOutline& flag : program.flags) text += paragraph_of(flag);
  text += ".SH COMMANDS\n";
  for (const CommandOutline* command : with_all_below(program)) {
    if (command->commands.empty()) text += section_of(*command);
  }
  text +=
      ".SH EXIT STATUS\n0: success; 1: failure; 2: bad usage. A failure is one line on stderr. "
      "The end of what reads standard output ends a command by SIGPIPE, which a shell tells as "
      "141.\n";
  text += ".SH ENVIRONMENT\nEach flag of " + bold("pagoda serve") + " may be a variable, such as " +
          bold("PAGODA_MAX_QUEUE") + " for " + bold("--max-queue") +
          "; the command line goes before it.\n";
  return text;
}

}  // namespace pagoda
