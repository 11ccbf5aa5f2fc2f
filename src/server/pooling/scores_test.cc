#include "server/pooling/scores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/api_client.h"

namespace pagoda {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr const char* kScore = "/v1/score";
constexpr const char* kRerank = "/v1/rerank";

class ScoresTest : public ::testing::Test {
 protected:
  json answer(const char* path, const json& body) { return client_.answer(path, json_text(body)); }
  json refusal(const char* path, const json& body) {
    return client_.refusal(path, json_text(body));
  }
  std::vector<int> ids(const std::string& text) {
    return client_.model().tokenizer->encode(text, {.add_special_tokens = false}).value();
  }
  std::vector<int> last_ids() { return client_.engine().last_request().prompt_token_ids; }
  // Returns the score computed from the embedding of both texts, joined.
  double expected(const std::string& first, const std::string& second) {
    const json embedding = client_.answer("/v1/embeddings", json{{"input", first + second}}.dump());
    return 1 / (1 + std::exp(-embedding.at("data").at(0).at("embedding").at(0).get<double>()));
  }

  ApiClient client_{FakeModelOptions{.max_model_len = 64}};
};

TEST_F(ScoresTest, ATextIsScoredWithEachOfAList) {
  const json scored = answer(kScore, {{"text_1", "who?"}, {"text_2", {"me", "you", "them"}}});
  EXPECT_EQ(scored.at("object"), "list");
  EXPECT_EQ(scored.at("model"), "fake-model");
  EXPECT_FALSE(scored.contains("system_fingerprint"));  // vLLM's has none
  ASSERT_EQ(scored.at("data").size(), 3u);
  int index = 0, num_tokens = 0;
  for (const std::string document : {"me", "you", "them"}) {
    const json& result = scored.at("data").at(index);
    EXPECT_EQ(result.at("index"), index++);
    EXPECT_NEAR(result.at("score").get<double>(), expected("who?", document), 1e-7) << document;
    num_tokens += static_cast<int>(ids("who?").size() + ids(document).size());
  }
  EXPECT_EQ(scored.at("usage").at("prompt_tokens"), num_tokens);
}

TEST_F(ScoresTest, TwoListsAreScoredPairByPair) {
  const json scored = answer(kScore, {{"text_1", {"a", "b"}}, {"text_2", {"c", "d"}}});
  ASSERT_EQ(scored.at("data").size(), 2u);
  EXPECT_NEAR(scored.at("data").at(0).at("score").get<double>(), expected("a", "c"), 1e-7);
  EXPECT_NEAR(scored.at("data").at(1).at("score").get<double>(), expected("b", "d"), 1e-7);
  const json one = answer(kScore, {{"text_1", "a"}, {"text_2", "c"}});
  EXPECT_EQ(one.at("data").at(0), scored.at("data").at(0));
}

TEST_F(ScoresTest, DocumentsAreRankedTheBestFirst) {
  const std::vector<std::string> documents = {"rain", "a bridge over a river", "mills", "rain",
                                              "x"};
  json asked = {{"query", "what?"}, {"documents", documents}};
  const json ranked = answer(kRerank, asked);
  ASSERT_EQ(ranked.at("results").size(), documents.size());
  double last = 1;
  std::vector<int> places(documents.size());
  for (const json& result : ranked.at("results")) {
    const int index = result.at("index");
    EXPECT_EQ(result.at("document").at("text"), documents[index]);
    const double score = result.at("relevance_score");
    EXPECT_NEAR(score, expected("what?", documents[index]), 1e-7);
    EXPECT_LE(score, last);
    last = score;
    places[index] = static_cast<int>(&result - &ranked.at("results").front());
  }
  EXPECT_EQ(places[3], places[0] + 1);  // of equal scores, the earlier one is first
  asked["top_n"] = 2;
  asked["return_documents"] = false;
  asked["documents"][1] = {{"text", documents[1]}, {"title", "Bridges"}};
  const json best = answer(kRerank, asked);
  ASSERT_EQ(best.at("results").size(), 2u);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(best.at("results").at(i).at("index"), ranked.at("results").at(i).at("index"));
    EXPECT_FALSE(best.at("results").at(i).contains("document"));
  }
  for (const char* path : {"/rerank", "/v2/rerank", "/reranking", "/v1/reranking"})
    EXPECT_EQ(answer(path, asked).at("results"), best.at("results")) << path;
}

TEST_F(ScoresTest, APromptOfTheModelsOwnHoldsThePair) {
  client_.model().score_format->prompt = "Is {document} about {query}? ";
  answer(kScore, {{"text_1", "{document}"}, {"text_2", "{query}!"}});
  EXPECT_EQ(last_ids(), ids("Is {query}! about {document}? "));
  EXPECT_THAT(refusal(kScore, {{"text_1", "a"}, {"text_2", "b"}, {"truncate_prompt_tokens", 9}})
                  .at("message")
                  .get<std::string>(),
              HasSubstr("which can't be cut"));
}

TEST_F(ScoresTest, ALongDocumentIsCutWhereThatIsAsked) {
  json asked = {{"query", "who?"}, {"documents", {std::string(100, 'd')}}};
  EXPECT_EQ(refusal(kRerank, asked).at("code"), "context_length_exceeded");
  asked["truncate_prompt_tokens"] = 12;
  answer(kRerank, asked);
  EXPECT_EQ(last_ids(), ids("who?" + std::string(8, 'd')));
  asked["truncate_prompt_tokens"] = -1;
  answer(kRerank, asked);
  EXPECT_EQ(last_ids(), ids("who?" + std::string(60, 'd')));
  asked["query"] = std::string(65, 'q');
  EXPECT_EQ(refusal(kRerank, asked).at("code"), "context_length_exceeded");
  asked["truncate_prompt_tokens"] = 65;
  EXPECT_EQ(refusal(kRerank, asked).at("param"), "truncate_prompt_tokens");
}

TEST_F(ScoresTest, WhatIsWrongIsNamed) {
  const json pair = {{"text_1", "a"}, {"text_2", "b"}};
  const auto with = [](json body, const char* name, const json& value) {
    body[name] = value;
    return body;
  };
  EXPECT_EQ(refusal(kScore, {{"text_1", "a"}}).at("param"), "text_2");
  EXPECT_EQ(refusal(kScore, with(pair, "text_1", 5)).at("param"), "text_1");
  EXPECT_EQ(refusal(kScore, with(pair, "text_1", json::array())).at("param"), "text_1");
  EXPECT_EQ(refusal(kScore, with(pair, "text_2", {""})).at("param"), "text_2");
  EXPECT_EQ(refusal(kScore, with(pair, "text_1", {"a", "b"})).at("code"), "unequal_lists");
  EXPECT_EQ(refusal(kScore, with(pair, "truncate_prompt_tokens", 0)).at("param"),
            "truncate_prompt_tokens");
  const json documents = {{"query", "a"}, {"documents", {"b"}}};
  EXPECT_EQ(refusal(kRerank, with(documents, "documents", {{{"title", "b"}}})).at("param"),
            "documents");
  EXPECT_EQ(refusal(kRerank, with(documents, "documents", "b")).at("param"), "documents");
  EXPECT_EQ(refusal(kRerank, with(documents, "top_n", -1)).at("param"), "top_n");
  EXPECT_EQ(refusal(kRerank, {{"documents", {"b"}}}).at("param"), "query");
  client_.refusal(kRerank, with(documents, "model", "other").dump(), 404);
  client_.model().score_format.reset();
  EXPECT_EQ(refusal(kRerank, documents).at("code"), "no_scores");
  EXPECT_EQ(refusal(kScore, pair).at("code"), "no_scores");
}

TEST_F(ScoresTest, AnAnswersMemoryCountsWhatWaitsForItsTurn) {
  const json asked = {{"text_1", "a"}, {"text_2", std::vector<std::string>(100, "b")}};
  const std::int64_t num_tokens = answer(kScore, asked).at("usage").at("prompt_tokens");
  const std::int64_t waiting = 400LL * client_.model().config.hidden_size + 4 * num_tokens;
  client_.service().memory = std::make_shared<RequestMemory>(100 * 160 + waiting - 1);
  refusal(kScore, asked);
  client_.service().memory = std::make_shared<RequestMemory>(100 * 160 + waiting);
  answer(kScore, asked);
}

TEST_F(ScoresTest, AFailureIsTold) {
  client_.refusal(kRerank, json{{"query", "fail "}, {"documents", {"by order"}}}.dump(), 500);
}

}  // namespace
}  // namespace pagoda
