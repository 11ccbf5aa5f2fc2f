#include "cli/commands/typed_input.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace pagoda {
namespace {

using Kind = TypedInput::Kind;

struct Typed {
  std::vector<std::string> lines;
  std::size_t next = 0;
  std::size_t num_going_on = 0;

  std::optional<TypedInput> read() {
    return read_typed_input([this](bool goes_on) -> std::optional<std::string> {
      num_going_on += goes_on ? 1 : 0;
      if (next == lines.size()) return {};
      return lines[next++];
    });
  }
};

TEST(TypedInputTest, ALineIsAMessageOrACommand) {
  Typed typed{{" hi there ", "/system  be kind ", "/help", "  /x", "", " \t", "a / b"}};
  EXPECT_EQ(typed.read()->text, " hi there ");
  const TypedInput command = *typed.read();
  EXPECT_EQ(command.kind, Kind::kCommand);
  EXPECT_EQ(command.command, "system");
  EXPECT_EQ(command.text, "be kind");
  EXPECT_EQ(typed.read()->command, "help");
  EXPECT_EQ(typed.read()->command, "x");
  EXPECT_EQ(typed.read()->kind, Kind::kNothing);
  EXPECT_EQ(typed.read()->kind, Kind::kNothing);
  EXPECT_EQ(typed.read()->kind, Kind::kMessage);
  EXPECT_FALSE(typed.read());
  EXPECT_EQ(typed.num_going_on, 0U);
}

TEST(TypedInputTest, QuotesHoldSeveralLines) {
  Typed typed{{"\"\"\"", "one", "", "/two", "\"\"\"", "\"\"\"begun", "ended\"\"\" ",
               "\"\"\"/not a command\"\"\"", "\"\"\"", "\"\"\"", "behind"}};
  EXPECT_EQ(typed.read()->text, "one\n\n/two");
  EXPECT_EQ(typed.read()->text, "begun\nended");
  const TypedInput alone = *typed.read();
  EXPECT_EQ(alone.kind, Kind::kMessage);
  EXPECT_EQ(alone.text, "/not a command");
  EXPECT_EQ(typed.read()->kind, Kind::kNothing);
  EXPECT_EQ(typed.read()->text, "behind");
  EXPECT_EQ(typed.num_going_on, 6U);
}

TEST(TypedInputTest, BlankLinesAtTheBeginningOfAMessageAreKept) {
  Typed typed{{"\"\"\"", "", "text", "\"\"\""}};
  EXPECT_EQ(typed.read()->text, "\ntext");
}

TEST(TypedInputTest, AnInputThatEndsInsideQuotesIsNoMessage) {
  Typed typed{{"\"\"\"", "one"}};
  EXPECT_EQ(typed.read()->kind, Kind::kUnfinished);
}

}  // namespace
}  // namespace pagoda
