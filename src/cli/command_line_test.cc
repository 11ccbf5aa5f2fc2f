// Properties of every flag of every subcommand: none takes the argument after its value, and none
// is refused in the parser's own words.
#include "cli/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/flags/engine_flags.h"
#include "cli/flags/usage_error.h"

namespace pagoda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct CommandLine {
  CommandLine() { add_commands(app, body); }

  // Returns "" if `arguments` parse, else the message for stderr. Calls do not affect later ones.
  std::string parse(const std::vector<std::string>& arguments) {
    std::vector<const char*> argv = {"pagoda"};
    for (const std::string& argument : arguments) argv.push_back(argument.c_str());
    const int argc = static_cast<int>(argv.size());
    if (const auto error = empty_value_error(app, argc, argv.data())) return *error;
    try {
      app.parse(argc, argv.data());
    } catch (const CLI::ParseError& error) {
      return usage_error(app, error);
    }
    return "";
  }

  CLI::App app{"", "pagoda"};
  CommandBody body;
};

struct Flag {
  std::vector<std::string> command;  // "bench", "serve"
  std::string name;
  std::vector<std::string> positionals;  // those that the command requires
  bool is_required = false;
};

std::vector<Flag> flags_of(const CLI::App& command, const std::vector<std::string>& path) {
  std::vector<std::string> positionals;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional() && option->get_required())
      positionals.push_back(fmt::format("positional-{}.gguf", positionals.size()));
  }
  std::vector<Flag> flags;
  for (const CLI::Option* option : command.get_options()) {
    const bool takes_value = option->get_items_expected_max() > 0;
    if (!takes_value || option->get_lnames().empty() || option->get_lnames()[0] == "help") continue;
    flags.push_back({path, "--" + option->get_lnames()[0], positionals, option->get_required()});
  }
  for (const CLI::App* inner : command.get_subcommands(nullptr)) {
    std::vector<std::string> inner_path = path;
    inner_path.push_back(inner->get_name());
    for (Flag& flag : flags_of(*inner, inner_path)) flags.push_back(std::move(flag));
  }
  return flags;
}

std::vector<Flag> all_flags() {
  const CommandLine line;
  return flags_of(line.app, {});
}

// Every flag accepts at least one of these.
constexpr const char* kValues[] = {"7",    "2M",     "0.5", "auto", "info", "text", "none",
                                   "Q8_0", "random", "cpu", "a b",  "-",    "/llm", "q8_0"};

TEST(CommandLine, NoFlagSwallowsWhatFollowsIt) {
  const std::vector<Flag> flags = all_flags();
  EXPECT_GT(flags.size(), 100U);
  CommandLine line;
  for (const Flag& flag : flags) {
    std::string last_error;
    bool is_parsed = false;
    for (const char* value : kValues) {
      std::vector<std::string> arguments = flag.command;
      arguments.insert(arguments.end(), {flag.name, value});
      arguments.insert(arguments.end(), flag.positionals.begin(), flag.positionals.end());
      for (const Flag& other : flags) {
        if (other.command == flag.command && other.is_required && other.name != flag.name)
          arguments.insert(arguments.end(), {other.name, other.name == "--format" ? "Q8_0" : "x"});
      }
      last_error = line.parse(arguments);
      is_parsed = last_error.empty();
      if (is_parsed) break;
    }
    EXPECT_TRUE(is_parsed) << fmt::format("{} {}: {}", fmt::join(flag.command, " "), flag.name,
                                          last_error);
  }
}

TEST(CommandLine, AListTakesOneValueEachTimeItIsGiven) {
  CommandLine line;
  EXPECT_EQ(line.parse({"serve", "--api-key", "a", "--api-key", "[b]", "--allowed-hosts", "*",
                        "--allowed-origins", "https://a.example", "model"}),
            "");
  const CLI::App& serve = *line.app.get_subcommand("serve");
  EXPECT_EQ(serve.get_option("--api-key")->results(), (std::vector<std::string>{"a", "[b]"}));
  EXPECT_EQ(serve.get_option("MODEL")->results(), std::vector<std::string>{"model"});
}

TEST(CommandLine, EveryFlagRefusesWithItsNameAndWhatItExpected) {
  CommandLine line;
  for (const Flag& flag : all_flags()) {
    for (const char* value : {"wings", "-1", "1e999", "12345678901234567890123", "4Q"}) {
      std::vector<std::string> arguments = flag.command;
      arguments.insert(arguments.end(), {flag.name, value});
      arguments.insert(arguments.end(), flag.positionals.begin(), flag.positionals.end());
      const std::string error = line.parse(arguments);
      if (error.empty() || error.starts_with("expected --")) continue;  // the flag takes any text
      EXPECT_THAT(error, AllOf(HasSubstr(flag.name + ": expected "), HasSubstr(value)));
    }
    std::vector<std::string> arguments = flag.command;
    arguments.insert(arguments.end(), flag.positionals.begin(), flag.positionals.end());
    arguments.push_back(flag.name);
    EXPECT_EQ(line.parse(arguments), flag.name + ": expected a value, got none");
    arguments.back() += "=";
    EXPECT_EQ(line.parse(arguments), flag.name + ": expected a value after the =, got none");
  }
}

std::string error_of(const std::vector<std::string>& arguments) {
  return CommandLine().parse(arguments);
}

TEST(CommandLine, ErrorsAreInAUsersWords) {
  EXPECT_EQ(error_of({"serve", "m", "--port", "70000"}),
            "--port: expected a whole number of 0 to 65535, got 70000");
  EXPECT_EQ(error_of({"serve", "m", "--device", "tpu"}),
            "--device: expected auto, reference, cpu, mlx or cuda, got tpu");
  EXPECT_EQ(error_of({"serve"}), "expected MODEL, got none; `pagoda serve --help` says more");
  EXPECT_EQ(error_of({"serve", "m", "--prot", "80"}),
            "--prot: expected a flag of `pagoda serve`, got none of them; did you mean --port?");
  EXPECT_EQ(error_of({"serve", "m", "--port", "1", "--port", "2"}),
            "--port: expected once, got 2 times");
  EXPECT_EQ(error_of({"run", "m", "two", "words"}),
            "words: expected no further argument of `pagoda run`; a text with spaces in it needs "
            "quotes");
  EXPECT_EQ(error_of({"run", "m", "--json=maybe"}), "--json: expected no value, got maybe");
  EXPECT_THAT(error_of({"srve", "m"}), AllOf(HasSubstr("got srve"), HasSubstr("mean serve?")));
  EXPECT_THAT(error_of({"bench", "speed"}), HasSubstr("machine, latency, throughput or serve"));
  EXPECT_THAT(error_of({}), HasSubstr("expected a subcommand: serve, run"));
}

TEST(CommandLine, APromptMayBearASubcommandsName) {
  CommandLine line;
  EXPECT_EQ(line.parse({"run", "m", "chat"}), "");
  EXPECT_EQ(line.app.get_subcommand("run")->get_option("--prompt")->results(),
            std::vector<std::string>{"chat"});
}

TEST(CommandLine, ANameMadeOfAPathIsUtf8) {
  ServedModel model;
  model.name = "m";
  EXPECT_EQ(names_in_api({.model = "folder/m\xff.gguf"}, model),
            (std::vector<std::string>{"m", "folder/m\uFFFD.gguf"}));
}

TEST(CommandLine, ValuesAreUtf8AndPathsMayBeOtherBytes) {
  CommandLine line;
  EXPECT_EQ(line.parse({"serve", "m\xff.gguf", "--served-model-name", "a\xff"}), "");
  EXPECT_EQ(bytes_error(line.app),
            "--served-model-name: expected UTF-8, got other bytes at offset 1");
  EXPECT_EQ(line.parse({"serve", "m\xff.gguf", "--served-model-name", "é"}), "");
  EXPECT_EQ(bytes_error(line.app), std::nullopt);
}

}  // namespace
}  // namespace pagoda
