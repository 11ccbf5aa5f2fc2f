#include "bench_serve/prompt_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>

namespace pagoda {
namespace {

using ::testing::HasSubstr;

// Returns a beginning-of-sequence token, then a token for each letter.
std::optional<std::vector<int>> encode_letters(const std::string& text) {
  std::vector<int> ids = {1};
  for (const char c : text) ids.push_back(static_cast<unsigned char>(c) + 100);
  return ids;
}

std::optional<std::vector<int>> encode_nothing(const std::string&) {
  return {};
}

std::vector<BenchPrompt> prompts_of(const PromptSetOptions& options,
                                    const Encode& encode = encode_letters) {
  Result<std::vector<BenchPrompt>> prompts = make_prompts(options, encode);
  EXPECT_TRUE(prompts.ok()) << prompts.status().message();
  return prompts.ok() ? *prompts : std::vector<BenchPrompt>();
}

std::string error_of(const PromptSetOptions& options) {
  return make_prompts(options, encode_letters).status().message();
}

// A file that is deleted after the test.
class PromptFile {
 public:
  explicit PromptFile(const std::string& content)
      : path_(std::filesystem::temp_directory_path() /
              ::testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::ofstream(path_) << content;
  }
  ~PromptFile() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

TEST(PromptSet, RandomPromptsHaveTheirLengthInTokensOfTheServers) {
  const auto prompts = prompts_of({.num_prompts = 20, .input_len = 50, .output_len = 7});
  ASSERT_EQ(prompts.size(), 20U);
  std::set<std::vector<int>> distinct;
  for (const BenchPrompt& prompt : prompts) {
    EXPECT_EQ(prompt.token_ids.size(), 50U);
    EXPECT_EQ(prompt.num_tokens, 50);
    EXPECT_EQ(prompt.output_len, 7);
    for (const int id : prompt.token_ids) EXPECT_GT(id, 100);  // no beginning-of-sequence token
    distinct.insert(prompt.token_ids);
  }
  EXPECT_EQ(distinct.size(), 20U);
}

TEST(PromptSet, TheSeedChoosesThePrompts) {
  for (const char* name : {"random", "prefix_repetition"}) {
    PromptSetOptions options = {.name = name, .num_prompts = 5, .seed = 3};
    const auto first = prompts_of(options);
    const auto again = prompts_of(options);
    options.seed = 4;
    const auto others = prompts_of(options);
    EXPECT_EQ(first[4].token_ids, again[4].token_ids);
    EXPECT_NE(first[4].token_ids, others[4].token_ids);
  }
}

TEST(PromptSet, WithoutATokenizerPromptsAreWords) {
  const auto prompts = prompts_of({.num_prompts = 2, .input_len = 30}, encode_nothing);
  EXPECT_TRUE(prompts[0].token_ids.empty());
  EXPECT_EQ(std::count(prompts[0].text.begin(), prompts[0].text.end(), ' '), 29);
  EXPECT_NE(prompts[0].text, prompts[1].text);
}

TEST(PromptSet, PrefixesAreSharedAndTheRestIsNot) {
  const auto prompts = prompts_of({.name = "prefix_repetition",
                                   .num_prompts = 12,
                                   .input_len = 40,
                                   .prefix_len = 30,
                                   .num_prefixes = 3});
  std::set<std::vector<int>> prefixes, suffixes;
  for (const BenchPrompt& prompt : prompts) {
    ASSERT_EQ(prompt.token_ids.size(), 40U);
    prefixes.emplace(prompt.token_ids.begin(), prompt.token_ids.begin() + 30);
    suffixes.emplace(prompt.token_ids.begin() + 30, prompt.token_ids.end());
  }
  EXPECT_EQ(prefixes.size(), 3U);
  EXPECT_EQ(suffixes.size(), 12U);
  EXPECT_THAT(
      error_of({.name = "prefix_repetition", .num_prompts = 1, .input_len = 10, .prefix_len = 10}),
      HasSubstr("fewer than the 10 tokens"));
}

TEST(PromptSet, NothingIsMadeUpUnderADataSetsName) {
  for (const char* name : {"sharegpt", "sonnet"}) {
    EXPECT_THAT(error_of({.name = name, .num_prompts = 1}),
                HasSubstr("[dataset-path] the data set " + std::string(name) + " is a file"));
  }
}

TEST(PromptSet, AShareGptFileGivesFirstQuestionsAndAnswersLengths) {
  const PromptFile file(R"([
    {"id": "a", "conversations": [{"from": "human", "value": "first question"},
                                  {"from": "gpt", "value": "0123456789"}, {"value": "x"}]},
    {"id": "b", "conversations": [{"from": "human", "value": "alone"}]},
    {"id": "c", "conversations": [{"value": "q"}, {"value": "too short a question"}]},
    {"id": "d"}, {"conversations": 7}, {"conversations": [7, {"value": 8}]}])");
  const PromptSetOptions options = {.name = "sharegpt", .path = file.path(), .num_prompts = 3};
  const auto prompts = prompts_of(options);
  ASSERT_EQ(prompts.size(), 3U);  // the only conversation that is kept, repeated
  for (const BenchPrompt& prompt : prompts) {
    EXPECT_EQ(prompt.text, "first question");
    EXPECT_EQ(prompt.output_len, 11);
  }
}

TEST(PromptSet, FilesThatAreNoneAreNamed) {
  EXPECT_THAT(error_of({.name = "sharegpt", .path = "/no/such/file", .num_prompts = 1}),
              HasSubstr("/no/such/file: expected a file"));
  for (const char* content : {"", "{", "{\"a\": 1}", "[1, 2", "\xff", "[]", "[1, 2]"}) {
    const PromptFile file(content);
    const auto prompts =
        make_prompts({.name = "sharegpt", .path = file.path(), .num_prompts = 1}, encode_letters);
    EXPECT_EQ(prompts.status().code(), StatusCode::kDataLoss) << content;
  }
}

TEST(PromptSet, SonnetsShareTheirStartAndNearlyTheirLength) {
  std::string poem;
  for (int i = 0; i < 100; ++i) poem += fmt::format("the hour {} of a day that is long\n", i);
  const PromptFile file(poem);
  const auto prompts = prompts_of({.name = "sonnet",
                                   .path = file.path(),
                                   .num_prompts = 6,
                                   .input_len = 2000,
                                   .prefix_len = 700});
  for (const BenchPrompt& prompt : prompts) {
    EXPECT_NEAR(prompt.num_tokens, 2000, 100);
    EXPECT_EQ(prompt.text.substr(0, 600), prompts[0].text.substr(0, 600));
    EXPECT_EQ(prompt.output_len, 150);
  }
  EXPECT_NE(prompts[0].text, prompts[1].text);
  EXPECT_THAT(error_of({.name = "sonnet", .path = file.path(), .num_prompts = 1, .input_len = 20}),
              HasSubstr("[prefix-len]"));
}

TEST(PromptSet, ASonnetFileGivesItsLines) {
  const PromptFile file("one line\n\nanother line\n");
  const auto prompts = prompts_of({.name = "sonnet",
                                   .path = file.path(),
                                   .num_prompts = 1,
                                   .input_len = 300,
                                   .prefix_len = 100});
  EXPECT_THAT(prompts[0].text, HasSubstr("one line\nanother line\n"));
  EXPECT_THAT(error_of({.name = "random", .path = file.path(), .num_prompts = 1}),
              HasSubstr("expected no path"));
}

}  // namespace
}  // namespace pagoda
