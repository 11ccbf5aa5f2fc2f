// /completion: a text, continued, in llama.cpp's shape.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/api_client.h"

namespace pagoda {
namespace {

using nlohmann::json;

constexpr const char* kCompletionPath = "/completion";

class LlamaCppCompletionTest : public ::testing::Test {
 protected:
  json answer(const json& body) { return client_.answer(kCompletionPath, json_text(body)); }

  ApiClient client_;
};

TEST_F(LlamaCppCompletionTest, AnswersInLlamaCppsShape) {
  const json whole = answer({{"prompt", "say one two"}, {"n_predict", 50}});
  EXPECT_EQ(whole.at("content"), "one two");
  EXPECT_EQ(whole.at("index"), 0);
  EXPECT_EQ(whole.at("stop"), true);
  EXPECT_EQ(whole.at("stop_type"), "eos");
  EXPECT_EQ(whole.at("model"), "fake-model");
  EXPECT_GT(whole.at("tokens_predicted"), 0);
  EXPECT_FALSE(whole.contains("tokens"));
  EXPECT_FALSE(whole.contains("completion_probabilities"));
  json other = client_.answer("/completions", R"({"prompt": "say one two", "n_predict": 50})");
  EXPECT_EQ(other.at("content"), whole.at("content"));
}

TEST_F(LlamaCppCompletionTest, APromptMayBeTokenIds) {
  const std::vector<int> ids = client_.model().tokenizer->encode("say one").value();
  EXPECT_EQ(answer({{"prompt", ids}}).at("content"), "one");
  EXPECT_EQ(answer({{"prompt", json::array({ids})}}).at("content"), "one");
  EXPECT_EQ(client_.refusal(kCompletionPath, R"({"prompt": ["a", "b"]})").at("param"), "prompt");
  EXPECT_EQ(client_.refusal(kCompletionPath, R"({"n_predict": 3})").at("param"), "prompt");
}

TEST_F(LlamaCppCompletionTest, ShowsTokensAndTheirProbabilities) {
  const json whole =
      answer({{"prompt", "say one"}, {"n_probs", 2}, {"return_tokens", true}, {"n_predict", 3}});
  const json& places = whole.at("completion_probabilities");
  ASSERT_FALSE(places.empty());
  ASSERT_EQ(places.size(), whole.at("tokens").size());
  for (std::size_t i = 0; i < places.size(); ++i) {
    EXPECT_EQ(places[i].at("id"), whole.at("tokens")[i]);
    EXPECT_LE(places[i].at("logprob"), 0);
    ASSERT_EQ(places[i].at("top_logprobs").size(), 2u);
    EXPECT_TRUE(places[i].at("top_logprobs")[0].contains("id"));
  }
}

TEST_F(LlamaCppCompletionTest, StreamsTheSameTextAndTokens) {
  json body = {{"prompt", "count 5"}, {"return_tokens", true}, {"timings_per_token", true}};
  const json whole = answer(body);
  body["stream"] = true;
  std::string text;
  json tokens = json::array();
  json last;
  for (const std::string& data : client_.event_data(kCompletionPath, json_text(body))) {
    last = parse_json(data);
    text += last.at("content").get<std::string>();
    for (const json& id : last.at("tokens")) tokens.push_back(id);
    EXPECT_TRUE(last.at("timings").contains("predicted_n"));
  }
  EXPECT_EQ(json(text), whole.at("content"));
  EXPECT_EQ(tokens, whole.at("tokens"));
  EXPECT_EQ(last.at("stop"), true);
}

TEST_F(LlamaCppCompletionTest, PenaltiesHaveAWindow) {
  answer({{"prompt", "say one"}, {"repeat_penalty", 1.25}, {"repeat_last_n", 64}});
  const SamplingParams said = client_.engine().last_request().sampling;
  EXPECT_EQ(said.repetition_penalty, 1.25f);
  EXPECT_EQ(said.repeat_last_n, 64);
  EXPECT_EQ(client_.refusal(kCompletionPath, R"({"prompt": "a", "repeat_last_n": -2})").at("param"),
            "repeat_last_n");
}

TEST_F(LlamaCppCompletionTest, WhatWouldChangeTheAnswerIsRefused) {
  const std::pair<const char*, json> refused[] = {{"return_progress", true},
                                                  {"min_keep", 3},
                                                  {"top_n_sigma", 2.0},
                                                  {"post_sampling_probs", true}};
  for (const auto& [name, value] : refused) {
    json body = {{"prompt", "a"}};
    body[name] = value;
    EXPECT_EQ(client_.refusal(kCompletionPath, json_text(body)).at("param"), name);
  }
}

}  // namespace
}  // namespace pagoda
