#include "core/utf8.h"

#include <gtest/gtest.h>

namespace pagoda {
namespace {

TEST(Utf8, TextsAreCutBetweenCharacters) {
  const std::string_view text = "aé猫😀";  // of 1, 2, 3 and 4 bytes
  EXPECT_EQ(num_characters(text), 4u);
  const std::string_view beginnings[] = {"",     "a",    "a",    "aé",   "aé", "aé",
                                         "aé猫", "aé猫", "aé猫", "aé猫", text, text};
  const std::string_view ends[] = {"",   "",     "",     "",      "😀", "😀",
                                   "😀", "猫😀", "猫😀", "é猫😀", text, text};
  for (std::size_t most = 0; most < std::size(ends); ++most) {
    EXPECT_EQ(beginning_of(text, most), beginnings[most]) << most;
    EXPECT_EQ(end_of(text, most), ends[most]) << most;
  }
}

}  // namespace
}  // namespace pagoda
