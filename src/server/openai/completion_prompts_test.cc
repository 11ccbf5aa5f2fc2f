// The prompts of completions: their shapes, what is said of them again, and those that are too long.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/api_client.h"
#include "text/gguf_vocabulary.h"

namespace pagoda {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr const char* kPromptsPath = "/v1/completions";

class CompletionPromptsTest : public ::testing::Test {
 protected:
  json first_choice(const std::string& body) {
    return client_.answer(kPromptsPath, body).at("choices").at(0);
  }
  json refusal(const std::string& body) { return client_.refusal(kPromptsPath, body); }

  ApiClient client_;
};

TEST_F(CompletionPromptsTest, PromptsComeInFourShapes) {
  EXPECT_EQ(first_choice(R"({"prompt": "say a"})").at("text"), "a");
  EXPECT_EQ(first_choice(R"({"prompt": [115, 97, 121, 32, 98]})").at("text"), "b");
  const json texts =
      client_.answer(kPromptsPath, R"({"prompt": ["say a", "say b"], "n": 2})").at("choices");
  const json ids =
      client_
          .answer(kPromptsPath,
                  R"({"prompt": [[115, 97, 121, 32, 97], [115, 97, 121, 32, 98]], "n": 2})")
          .at("choices");
  for (const json& choices : {texts, ids}) {
    ASSERT_EQ(choices.size(), 4u);
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(choices[i].at("index"), i);
      EXPECT_EQ(choices[i].at("text"), i < 2 ? "a" : "b");
    }
  }
}

TEST_F(CompletionPromptsTest, ALongPromptIsCutWhereThatIsAsked) {
  json body = {{"prompt", {"xx say a", json::array({120, 115, 97, 121, 32, 98})}},
               {"truncate_prompt_tokens", 5},
               {"return_token_ids", true}};
  const json cut = client_.answer(kPromptsPath, json_text(body));
  EXPECT_EQ(cut.at("choices")[0].at("text"), "a");
  EXPECT_EQ(cut.at("choices")[1].at("text"), "b");
  EXPECT_EQ(cut.at("choices")[0].at("prompt_token_ids"), json({115, 97, 121, 32, 97}));
  EXPECT_EQ(cut.at("usage").at("prompt_tokens"), 10);
  body = {{"prompt", std::string(3000, 'x')}, {"max_tokens", 48}, {"truncate_prompt_tokens", -1}};
  EXPECT_EQ(client_.answer(kPromptsPath, json_text(body)).at("usage").at("prompt_tokens"), 2000);
  body["truncate_prompt_tokens"] = 2048;
  EXPECT_EQ(refusal(json_text(body)).at("code"), "context_length_exceeded");
  for (const auto& [body, param] : std::vector<std::pair<std::string, std::string>>{
           {R"({"prompt": "a", "truncate_prompt_tokens": 0})", "truncate_prompt_tokens"},
           {R"({"prompt": "a", "truncate_prompt_tokens": -2})", "truncate_prompt_tokens"},
           {R"({"prompt": "a", "truncate_prompt_tokens": 2049})", "truncate_prompt_tokens"},
           {R"({"prompt": "a", "truncate_prompt_tokens": 5, "suffix": "b"})",
            "truncate_prompt_tokens"},
           {R"({"prompt": [1, 100000], "truncate_prompt_tokens": 1})", "prompt"}})
    EXPECT_EQ(refusal(body).at("param"), param) << body;
}

TEST_F(CompletionPromptsTest, WhatTheTokenizerPutsBeforeAPromptIsNotCut) {
  client_.model().tokenizer = tokenizer_with_bos();
  json body = {{"prompt", "aab"}, {"echo", true}, {"max_tokens", 0}, {"return_token_ids", true}};
  const auto echoed = [&](int most) {
    body["truncate_prompt_tokens"] = most;
    const json choice = first_choice(json_text(body));
    return std::pair(choice.at("text").get<std::string>(), choice.at("prompt_token_ids"));
  };
  EXPECT_EQ(echoed(4), std::pair(std::string("aab"), json({2, 0, 0, 1})));
  EXPECT_EQ(echoed(3), std::pair(std::string("<s>ab"), json({2, 0, 1})));
}

TEST_F(CompletionPromptsTest, EchoPutsThePromptBefore) {
  const json choice =
      first_choice(R"({"prompt": "say a", "echo": true, "logprobs": 0, "return_token_ids": true})");
  EXPECT_EQ(choice.at("text"), "say aa");
  EXPECT_EQ(choice.at("prompt_token_ids"), parse_json("[115, 97, 121, 32, 97]"));
  EXPECT_EQ(choice.at("token_ids").size(), 2u);
  const json& logprobs = choice.at("logprobs");
  EXPECT_EQ(logprobs.at("tokens"), parse_json(R"(["s", "a", "y", " ", "a", "a", "<|im_end|>"])"));
  EXPECT_TRUE(logprobs.at("token_logprobs").at(0).is_null());
  EXPECT_TRUE(logprobs.at("top_logprobs").at(0).is_null());
  EXPECT_EQ(logprobs.at("token_logprobs").at(1), FakeEngine::logprob_of(97));

  const json body = client_.answer(
      kPromptsPath, R"({"prompt": "say a", "echo": true, "logprobs": 0, "max_tokens": 0})");
  EXPECT_EQ(body.at("choices").at(0).at("text"), "say a");
  EXPECT_EQ(body.at("choices").at(0).at("logprobs").at("tokens").size(), 5u);
  EXPECT_EQ(body.at("choices").at(0).at("finish_reason"), "length");
  EXPECT_EQ(body.at("usage").at("completion_tokens"), 0);
}

TEST_F(CompletionPromptsTest, PromptLogprobsAreVllmsList) {
  const json list =
      first_choice(R"({"prompt": "say a", "prompt_logprobs": 2})").at("prompt_logprobs");
  ASSERT_EQ(list.size(), 5u);
  EXPECT_TRUE(list[0].is_null());
  EXPECT_EQ(list[1].size(), 2u);
  EXPECT_EQ(list[1].at("97"),
            (json{{"logprob", FakeEngine::logprob_of(97)}, {"rank", 1}, {"decoded_token", "a"}}));
  EXPECT_EQ(list[1].at("98").at("rank"), 2);
}

TEST_F(CompletionPromptsTest, TooLongIsSaidBeforeTheEngineSeesIt) {
  const json error = refusal(R"({"prompt": ")" + std::string(2048, 'a') + R"("})");
  EXPECT_EQ(error.at("code"), "context_length_exceeded");
  EXPECT_THAT(
      error.at("message").get<std::string>(),
      HasSubstr(
          "maximum context length is 2048 tokens. However, your request has 2048 input tokens"));
  const json huge = refusal(R"({"prompt": ")" + std::string(4'000'000, 'a') + R"("})");
  EXPECT_THAT(huge.at("message").get<std::string>(), HasSubstr("has at least 2048 input tokens"));
  // The length of an answer is shortened to what the context holds.
  const json body = client_.answer(
      kPromptsPath, R"({"prompt": ")" + std::string(2040, 'a') + R"(", "ignore_eos": true})");
  EXPECT_EQ(body.at("usage").at("total_tokens"), 2048);
}

}  // namespace
}  // namespace pagoda
