#include "core/utf8.h"

#include <gtest/gtest.h>

namespace pagoda {
namespace {

TEST(Utf8, TextsAreCutBetweenCharacters) {
  const std::string_view text = "aé猫😀";  // characters of 1, 2, 3 and 4 bytes
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

TEST(Utf8, EveryWellFormedLeadAndNothingElse) {
  EXPECT_EQ(find_invalid_utf8("plain é € 👋"), std::string_view::npos);
  EXPECT_EQ(find_invalid_utf8("\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf"), std::string_view::npos);
  for (const std::string_view bad :
       {"ab\x80", "ab\xc0\x80", "ab\xc1\xbf", "ab\xe0\x9f\xbf", "ab\xed\xa0\x80",
        "ab\xf0\x8f\xbf\xbf", "ab\xf4\x90\x80\x80", "ab\xf5\x80\x80\x80", "ab\xe2\x82", "ab\xc3"}) {
    EXPECT_EQ(find_invalid_utf8(bad), 2u) << bad;
    for (std::size_t num_around = 1; num_around <= 17; ++num_around) {  // words have eight bytes
      const std::string around(num_around, 'a');
      EXPECT_EQ(find_invalid_utf8(around + "é" + std::string(bad) + around), num_around + 4) << bad;
    }
  }
}

TEST(Utf8, WhatIsNoneIsReplaced) {
  EXPECT_EQ(as_utf8("plain é"), "plain é");
  EXPECT_EQ(as_utf8("a\xff\xc3(é\x80"), "a\uFFFD\uFFFD(é\uFFFD");
}

}  // namespace
}  // namespace pagoda
