#include "cli/base/standard_output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <termios.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace pagoda {
namespace {

TEST(StandardOutputTest, ControlsOfAnAnswerAreSpelled) {
  EXPECT_EQ(without_controls("a\tb\nc"), "a\tb\nc");
  EXPECT_EQ(without_controls("\x1b]0;title\x07 \x1b[2J\r\x7f"),
            "\\u001b]0;title\\u0007 \\u001b[2J\\u000d\\u007f");
  EXPECT_EQ(without_controls(std::string_view("\0", 1)), "\\u0000");
  EXPECT_EQ(without_controls("\xc2\x9b"
                             "2J"),
            "\\u009b2J");  // CSI as one character
  EXPECT_EQ(without_controls("\xc2\x80\xc2\x9f"), "\\u0080\\u009f");
  // Characters next to the controls, and other characters that end in the same bytes, are kept.
  const std::string text = "\xc2\xa0\xc3\x9b\xe2\x82\x80\xf0\x9f\x9b\x80 ~\xc2";
  EXPECT_EQ(without_controls(text), text);
}

std::string read_all(int descriptor) {
  char buffer[256];
  const ssize_t size = read(descriptor, buffer, sizeof(buffer));
  return {buffer, static_cast<std::size_t>(size < 0 ? 0 : size)};
}

TEST(StandardOutputTest, OnlyATerminalGetsThemSpelled) {
  constexpr const char* kText = "\x1b[31mred";
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_GE(terminal, 0);
  ASSERT_EQ(grantpt(terminal), 0);
  ASSERT_EQ(unlockpt(terminal), 0);
  std::FILE* const screen = std::fopen(ptsname(terminal), "w");
  ASSERT_NE(screen, nullptr);
  write_answer(screen, kText);
  EXPECT_EQ(read_all(terminal), "\\u001b[31mred");
  std::fclose(screen);
  close(terminal);

  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::FILE* const file = fdopen(ends[1], "w");
  write_answer(file, kText);
  EXPECT_EQ(read_all(ends[0]), kText);
  std::fclose(file);
  close(ends[0]);
}

}  // namespace
}  // namespace pagoda
