// `pagoda completions SHELL` and `pagoda man` print texts made from the program's flags.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "cli/base/command.h"
#include "cli/flags/flag_values.h"
#include "cli/outline/completion_scripts.h"
#include "cli/outline/man_page.h"
#include "core/version.h"

namespace pagoda {
namespace {

int print_text(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  return kExitOk;
}

std::string completions_for(const std::string& shell, const CommandOutline& program) {
  if (shell == "bash") return bash_completions(program);
  return shell == "zsh" ? zsh_completions(program) : fish_completions(program);
}

}  // namespace

void add_completions_commands(CLI::App& app, CommandBody& body) {
  auto shell = std::make_shared<std::string>();
  CLI::App& completions = *app.add_subcommand(
      "completions", "Print what a shell completes commands, flags and values by");
  completions.add_option("SHELL", *shell, "Which one")
      ->required()
      ->check(one_of({"bash", "zsh", "fish"}));
  completions.callback([shell, &app, &body] {
    body = [shell, &app] { return print_text(completions_for(*shell, outline_of(app))); };
  });
  CLI::App& man = *app.add_subcommand("man", "Print the manual page: pagoda man | man -l -");
  man.callback([&app, &body] {
    body = [&app] { return print_text(man_page(outline_of(app), std::string(version()))); };
  });
}

}  // namespace pagoda
