// Outlines have every command and flag, and so have the texts that are written from them.
#include "cli/outline/command_outline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include "cli/command_line.h"
#include "cli/flags/flag_values.h"
#include "cli/outline/completion_scripts.h"
#include "cli/outline/man_page.h"

namespace pagoda {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct Program {
  Program() { add_commands(app, body); }

  CLI::App app{"A program", "pagoda"};
  CommandBody body;
};

const FlagOutline* find_flag(const CommandOutline& program, const std::string& command,
                             const std::string& name) {
  for (const CommandOutline* one : with_all_below(program)) {
    if (one->name != command) continue;
    for (const FlagOutline& flag : one->flags) {
      for (const std::string& known : flag.names) {
        if (known == name) return &flag;
      }
    }
  }
  return nullptr;
}

// Fails the test if `program` lacks a flag of `app` or of a command below it.
void expect_all_of(const CLI::App& app, const std::string& name, const CommandOutline& program) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& flag : option->get_lnames())
      EXPECT_NE(find_flag(program, name, "--" + flag), nullptr) << name << " --" << flag;
  }
  for (const CLI::App* inner : app.get_subcommands(nullptr)) {
    expect_all_of(*inner, name + " " + inner->get_name(), program);
  }
}

TEST(CommandOutline, HasEveryFlagWithWhatItTakes) {
  const Program line;
  const CommandOutline program = outline_of(line.app);
  expect_all_of(line.app, "pagoda", program);
  EXPECT_THAT(find_flag(program, "pagoda serve", "--log-format")->choices,
              ElementsAre("text", "json"));
  EXPECT_TRUE(find_flag(program, "pagoda serve", "--api-key-file")->is_path);
  EXPECT_EQ(find_flag(program, "pagoda serve", "--port")->default_value, "8000");
  EXPECT_EQ(find_flag(program, "pagoda serve", "--no-enable-prefix-caching")->value, "");
  EXPECT_EQ(find_flag(program, "pagoda serve", "--help")->value, "");
  EXPECT_TRUE(find_flag(program, "pagoda serve", "--api-key")->may_be_repeated);
  EXPECT_TRUE(find_flag(program, "pagoda serve", "MODEL")->is_path);
  EXPECT_NE(find_flag(program, "pagoda bench serve", "--base-url"), nullptr);
  EXPECT_NE(find_flag(program, "pagoda man", "--help"), nullptr);
}

TEST(CommandOutline, IsWholeInAllThatIsWrittenFromIt) {
  const Program line;
  const CommandOutline program = outline_of(line.app);
  const std::string bash = bash_completions(program);
  const std::string zsh = zsh_completions(program);
  const std::string fish = fish_completions(program);
  std::string man = man_page(program, "1");
  for (std::size_t at; (at = man.find("\\-")) != std::string::npos;) man.erase(at, 1);
  for (const CommandOutline* command : with_all_below(program)) {
    EXPECT_THAT(bash, HasSubstr("'" + command->name + "') words="));
    EXPECT_THAT(fish, HasSubstr("'__pagoda_command_is " + command->name + "'"));
    if (command->commands.empty()) {
      EXPECT_THAT(man, HasSubstr(".SS \\fB" + command->name));
    }
    for (const FlagOutline& flag : command->flags) {
      if (flag.is_positional) continue;
      for (const std::string& name : flag.names) {
        EXPECT_THAT(bash, HasSubstr(name));
        EXPECT_THAT(zsh, HasSubstr(name));
        EXPECT_THAT(fish, HasSubstr(name.starts_with("--") ? "-l " + name.substr(2) : name));
        EXPECT_THAT(man, HasSubstr("\\fB" + name + "\\fR"));
      }
    }
  }
}

TEST(CommandOutline, ListsAreReadAsTheyAreWritten) {
  for (const std::vector<std::string>& names :
       {std::vector<std::string>{"a"}, {"a", "b"}, {"a", "b", "c"}, {"a", "b", "c", "d"}})
    EXPECT_EQ(names_listed(listed(names)), names);
}

}  // namespace
}  // namespace pagoda
