#include "serving/fill_in_format.h"

#include <gtest/gtest.h>

#include "text/grammar_test_rig.h"

namespace pagoda {
namespace {

TEST(FillInFormat, IsWhatTheVocabularyHasTokensFor) {
  const std::vector<std::string> three = {"<fim_prefix>", "<fim_suffix>", "<fim_middle>"};
  const auto star = make_tokenizer({}, three);
  const auto found = find_fill_in_format(*star);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->prefix_id, star->token_to_id(three[0]));
  EXPECT_EQ(found->suffix_id, star->token_to_id(three[1]));
  EXPECT_EQ(found->middle_id, star->token_to_id(three[2]));
  EXPECT_FALSE(found->file_id.has_value());
  std::vector<std::string> all = three;
  all.insert(all.end(), {"<repo_name>", "<file_sep>"});
  const auto star2 = make_tokenizer({}, all);
  EXPECT_EQ(find_fill_in_format(*star2)->repository_id, star2->token_to_id("<repo_name>"));
  EXPECT_EQ(find_fill_in_format(*star2)->file_id, star2->token_to_id("<file_sep>"));
  const auto codestral = make_tokenizer({}, {"[SUFFIX]", "[PREFIX]"});
  ASSERT_TRUE(find_fill_in_format(*codestral).has_value());
  EXPECT_FALSE(find_fill_in_format(*codestral)->middle_id.has_value());
  const auto two = make_tokenizer({}, {"<fim_prefix>", "<fim_suffix>"});
  EXPECT_FALSE(find_fill_in_format(*two).has_value());
}

TEST(FillInFormat, PutsTheAnswerLast) {
  const std::vector<int> begin = {1}, prefix = {5, 6}, suffix = {7};
  EXPECT_EQ(
      fill_in_prompt(
          {.prefix_id = 10, .suffix_id = 11, .middle_id = 12, .repository_id = {}, .file_id = {}},
          begin, prefix, suffix),
      (std::vector<int>{1, 10, 5, 6, 11, 7, 12}));
  EXPECT_EQ(
      fill_in_prompt(
          {.prefix_id = 10, .suffix_id = 11, .middle_id = {}, .repository_id = {}, .file_id = {}},
          begin, prefix, suffix),
      (std::vector<int>{1, 11, 7, 10, 5, 6}));
}

}  // namespace
}  // namespace pagoda
