#include "cli/flags/flag_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/nearest_name.h"

namespace pagoda {
namespace {

using ::testing::HasSubstr;

// Returns the text that the check passes to the parser, or the check's error.
std::string checked(const CLI::Validator& check, std::string text) {
  const std::string error = check(text);
  return error.empty() ? text : error;
}

TEST(FlagValues, AmountsHaveUnits) {
  EXPECT_EQ(parse_amount("8k"), 8000);
  EXPECT_EQ(parse_amount("8K"), 8192);
  EXPECT_EQ(parse_amount("8KiB"), 8192);
  EXPECT_EQ(parse_amount("4G"), std::int64_t{4} << 30);
  EXPECT_EQ(parse_amount("4GB"), 4'000'000'000);
  EXPECT_EQ(parse_amount("512MiB"), 512 << 20);
  EXPECT_EQ(parse_amount("25.6k"), 25600);
  EXPECT_EQ(parse_amount("0.5M"), 512 << 10);
  EXPECT_EQ(parse_amount("100B"), 100);
  EXPECT_EQ(parse_amount("0"), 0);
  for (const char* text : {"", "k", "-4k", "4Q", "4 k", "4kk", "0.3", "1.2.3k", "1e3", "8192T",
                           "4Gi", "99999999999999999999", "."}) {
    EXPECT_EQ(parse_amount(text), std::nullopt) << text;
  }
}

TEST(FlagValues, APathPrefixHasNoSlashAtItsEnd) {
  EXPECT_EQ(checked(path_prefix(), "/llm"), "/llm");
  EXPECT_EQ(checked(path_prefix(), "/a-b/v2.0~x/"), "/a-b/v2.0~x");
  EXPECT_EQ(checked(path_prefix(), "/"), "");
  for (const std::string text : {"", "llm", "//", "/a//b", "/a b", "/..", "/a/../b", "/.", "/a\"b",
                                 "https://a.example/llm", "/a?b", "/%41", "/a\n"}) {
    EXPECT_EQ(checked(path_prefix(), text), "expected a path such as /llm, got " + text);
  }
  EXPECT_EQ(path_prefix()(std::string(10'000, '/')).substr(0, 20), "expected a path such");
}

TEST(FlagValues, WholeNumbersArePlainDigitsInTheirRange) {
  EXPECT_EQ(checked(whole_number<std::uint16_t>(), "65535"), "65535");
  EXPECT_EQ(checked(whole_number<std::uint16_t>(), "65536"),
            "expected a whole number of 0 to 65535, got 65536");
  EXPECT_EQ(checked(whole_number(0, 100), "010"), "10");
  EXPECT_EQ(checked(whole_number(0, 100), "-0"), "0");
  EXPECT_EQ(checked(whole_number(0, 1 << 24), "8k"), "8000");
  EXPECT_EQ(checked(whole_number<int>(), "-3"), "-3");
  EXPECT_EQ(checked(whole_number<int>(), "3.5"), "expected a whole number, got 3.5");
  EXPECT_EQ(checked(whole_number<int>(), "0x10"), "expected a whole number, got 0x10");
  EXPECT_EQ(checked(whole_number<std::uint64_t>(), "18446744073709551615"), "18446744073709551615");
  EXPECT_THAT(checked(whole_number<std::uint64_t>(), "18446744073709551616"), HasSubstr("or more"));
  EXPECT_EQ(checked(whole_number<std::int64_t>(0), "4Q"),
            "expected a whole number of 0 or more, got 4Q");
}

TEST(FlagValues, NumbersAndChoices) {
  EXPECT_EQ(checked(real_number(), "-1.5e-3"), "-1.5e-3");
  EXPECT_EQ(checked(real_number(0), "inf"), "inf");
  EXPECT_EQ(checked(real_number(0, 1), "2"), "expected a number of 0 to 1, got 2");
  for (const char* text : {"nan", "", "1x", "0x1", "fast", "e"})
    EXPECT_THAT(checked(real_number(), text), HasSubstr("expected a number, got")) << text;
  EXPECT_EQ(checked(one_of({"a", "b", "c"}), "b"), "b");
  EXPECT_EQ(checked(one_of({"a", "b", "c"}), "d"), "expected a, b or c, got d");
}

TEST(NearestName, IsWithinAThirdOfTheLetters) {
  const std::vector<std::string> names = {"smollm2", "hf:Qwen/Qwen3-0.6B"};
  EXPECT_EQ(nearest_name("smolm2", names), "smollm2");
  EXPECT_EQ(nearest_name("SMOLLM2", names), "smollm2");
  EXPECT_EQ(nearest_name("smlolm2", names), "smollm2");
  EXPECT_EQ(nearest_name("llama3", names), std::nullopt);
  EXPECT_EQ(nearest_name("", names), std::nullopt);
}

}  // namespace
}  // namespace pagoda
