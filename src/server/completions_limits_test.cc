// The memory and the queue that completions may take.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/api_client.h"

namespace pagoda {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr const char* kCompletionsPath = "/v1/completions";

TEST(CompletionsMemory, PromptsThatAreSaidAgainCount) {
  ApiClient client({.max_model_len = 100000});
  json body = {{"prompt", std::string(60000, 'a')}, {"n", 2}, {"max_tokens", 1}};
  for (const char* again : {"echo", "return_token_ids"}) {
    body[again] = true;
    EXPECT_EQ(client.post(kCompletionsPath, json_text(body)).status, 200) << again;
  }
  client.service().answers = std::make_shared<AnswerBudget>(1 << 20);
  body["prompt"] = {std::string(60000, 'a'), std::string(60000, 'b')};
  EXPECT_THAT(client.refusal(kCompletionsPath, json_text(body)).at("message"),
              HasSubstr("at most 1 MB"));
}

TEST(CompletionsMemory, AnAnswerCountsAsItComes) {
  ApiClient client({.max_model_len = 10000});
  client.service().answers = std::make_shared<AnswerBudget>(1 << 20);
  EXPECT_EQ(client.answer(kCompletionsPath, R"({"prompt": "say it", "n": 64, "max_tokens": 9000})")
                .at("choices")
                .size(),
            64U);
  const json error = client.refusal(
      kCompletionsPath, R"({"prompt": "count 2000", "n": 4, "max_tokens": 9000, "logprobs": 5})");
  EXPECT_THAT(error.at("message"), HasSubstr("expected an answer of at most 1 MB"));
  EXPECT_THAT(client
                  .refusal("/v1/chat/completions",
                           R"({"messages": [{"role": "user", "content": "count 2000"}],
                                 "logprobs": true, "top_logprobs": 20})")
                  .at("message"),
              HasSubstr("at most 1 MB"));
}

TEST(CompletionsQueue, AFullQueueIs429AndTakesNoPartOfTheRequest) {
  ApiClient client({.max_queue = 2});
  const json tokens = client.answer("/tokenize", R"({"prompt": "think 9"})").at("tokens");
  const auto waiting =
      client.engine().submit({.prompt_token_ids = tokens}, [](const OutputEvent&) {});
  ASSERT_TRUE(waiting.ok());
  const HttpResponse response =
      client.post(kCompletionsPath, R"({"prompt": ["think 9", "think 9"]})");
  EXPECT_EQ(response.status, 429);
  EXPECT_THAT(response.headers, ::testing::Contains(::testing::Pair("Retry-After", "1")));
  client.engine().cancel(*waiting);
  client.engine().drain(5);
  EXPECT_EQ(client.engine().num_cancelled_samples(), 1);
}

TEST(CompletionsQueue, MorePromptsThanTheQueueHoldsAre400) {
  ApiClient client({.max_queue = 2});
  const json error =
      client.refusal(kCompletionsPath, R"({"prompt": ["think 9", "think 9", "think 9"]})", 400);
  EXPECT_THAT(error.at("message").get<std::string>(), HasSubstr("at most 2 prompts, got 3"));
  EXPECT_EQ(error.at("param"), "prompt");
}

TEST(CompletionsQueue, AFullQueueIs429BeforeTheRequestIsRead) {
  ApiClient client({.max_queue = 1});
  const json tokens = client.answer("/tokenize", R"({"prompt": "think 9"})").at("tokens");
  ASSERT_TRUE(client.engine().submit({.prompt_token_ids = tokens}, [](const OutputEvent&) {}).ok());
  EXPECT_EQ(client.post(kCompletionsPath, "{not json").status, 429);
  EXPECT_EQ(client.post("/v1/chat/completions", "{not json").status, 429);
  EXPECT_EQ(client.post("/tokenize", "{not json").status, 400);
}

}  // namespace
}  // namespace pagoda
