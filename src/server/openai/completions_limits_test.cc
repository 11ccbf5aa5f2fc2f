// The memory and the queue that completions may take.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/api_client.h"
#include "tests/support/eventually.h"

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
  client.service().memory = std::make_shared<RequestMemory>(1 << 20);
  body["prompt"] = {std::string(60000, 'a'), std::string(60000, 'b')};
  EXPECT_THAT(client.refusal(kCompletionsPath, json_text(body)).at("message"),
              HasSubstr("at most 1 MB"));
}

TEST(CompletionsMemory, AnAnswerCountsAsItComes) {
  ApiClient client({.max_model_len = 10000});
  client.service().memory = std::make_shared<RequestMemory>(1 << 20);
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

// A set of requests that wait for their answers, and the memory that they leave.
class JobMemoryTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kLimit = 4 << 20;

  JobMemoryTest() { client_.service().memory = budget_; }

  // Sends a request, whose answer stays pending.
  void ask(const std::string& path, const json& body) {
    const int num_before = client_.engine().stats().num_running;
    HttpRequest request = {.method = "POST", .path = path, .body = json_text(body)};
    request.held = std::make_shared<MemoryAccount>(budget_);
    replies_.push_back(client_.router().handle(std::move(request), [] {}));
    ASSERT_TRUE(eventually([&] {
      auto* pending = std::get_if<std::unique_ptr<PendingReply>>(&replies_.back().content);
      if (pending == nullptr) return true;
      if (auto next = (*pending)->poll()) replies_.back().become(*std::move(next));
      return client_.engine().stats().num_running > num_before;
    }));
  }
  // Returns the status with which the last request was refused; 0: it was not refused.
  int refused() const {
    const auto* response = std::get_if<HttpResponse>(&replies_.back().content);
    return response == nullptr ? 0 : response->status;
  }
  bool has_room(std::int64_t num_bytes) const {
    return HeldBytes(std::make_shared<MemoryAccount>(budget_)).grow(num_bytes).ok();
  }

  std::shared_ptr<RequestMemory> budget_ = std::make_shared<RequestMemory>(kLimit);
  ApiClient client_;
  std::vector<HttpReply> replies_;
};

TEST_F(JobMemoryTest, WhatTheAnswerDoesWithoutIsNotKept) {
  const std::string large(3 << 20, 'x');
  const json tool = {{"type", "function"}, {"function", {{"name", "f"}, {"description", large}}}};
  json chat = {{"messages", {{{"role", "user"}, {"content", "think 60"}}}}};
  for (const json& more :
       {json{{"chat_template_kwargs", {{"unseen", large}}}}, json{{"user", large}},
        json{{"tools", {tool}}, {"tool_choice", "none"}}}) {
    json body = chat;
    body.update(more);
    ask("/v1/chat/completions", body);
    EXPECT_EQ(refused(), 0);
  }
  ask("/v1/completions", {{"prompt", "think 60"}, {"user", large}});
  EXPECT_TRUE(has_room(kLimit - 100'000));
}

TEST_F(JobMemoryTest, RulesOfTokensCountUntilTheAnswerEnds) {
  json bias = json::object();
  for (int i = 0; i < 250; ++i) bias[std::to_string(i)] = 1;
  std::vector<std::string> words;
  for (int i = 0; i < 1000; ++i) words.push_back(fmt::format("{:04}", i));
  for (int i = 0; i < 40; ++i)
    ask("/v1/completions", {{"prompt", "think 60"}, {"logit_bias", bias}, {"bad_words", words}});
  EXPECT_EQ(refused(), 0);
  EXPECT_FALSE(has_room(kLimit - 40 * 1000 * 16));
}

TEST_F(JobMemoryTest, WhatTheAnswerRepeatsCounts) {
  const json tools = {
      {{"type", "function"}, {"name", "f"}, {"description", std::string(3 << 20, 'x')}}};
  const json body = {{"input", "think 60"}, {"tools", tools}, {"tool_choice", "none"}};
  ask("/v1/responses", body);
  EXPECT_EQ(refused(), 0);
  EXPECT_FALSE(has_room(kLimit / 2));
  ask("/v1/responses", body);
  EXPECT_EQ(refused(), 503);
  replies_.clear();
  EXPECT_TRUE(eventually([&] { return has_room(kLimit); }));
}

TEST_F(JobMemoryTest, AConversationThatGoesOnCountsForEachThatDoes) {
  const json first = client_.answer(
      "/v1/responses", json{{"input",
                             {{{"role", "user"}, {"content", "a"}, {"type", "message"}},
                              {{"type", "function_call_output"},
                               {"call_id", std::string(150'000, 'x')},
                               {"output", "b"}},
                              {{"role", "user"}, {"content", "say c"}}}}}
                           .dump());
  ASSERT_EQ(first.at("store"), true);
  for (int i = 0; i < 10; ++i)
    ask("/v1/responses", {{"previous_response_id", first.at("id")}, {"input", "think 60"}});
  EXPECT_TRUE(has_room(2'000'000));
  EXPECT_FALSE(has_room(kLimit - 10 * 150'000));
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
