// /embedding: vectors in llama.cpp's shape.
#include <gtest/gtest.h>

#include "tests/support/api_client.h"

namespace pagoda {
namespace {

using nlohmann::json;

class LlamaCppEmbeddingsTest : public ::testing::Test {
 protected:
  json answer(const json& body) { return client_.answer("/embedding", json_text(body)); }
  json refusal(const json& body) { return client_.refusal("/embedding", json_text(body)); }
  // Returns the vectors of the same inputs in OpenAI's shape.
  std::vector<json> expected(const json& inputs) {
    std::vector<json> vectors;
    const json body = client_.answer("/v1/embeddings", json_text(json{{"input", inputs}}));
    for (const json& one : body.at("data")) vectors.push_back(one.at("embedding"));
    return vectors;
  }
  std::vector<int> ids(const std::string& text) {
    return client_.model().tokenizer->encode(text).value();
  }

  ApiClient client_{FakeModelOptions{.max_model_len = 64}};
};

TEST_F(LlamaCppEmbeddingsTest, AnswersInLlamaCppsShape) {
  const json both = answer({{"content", {"say a", "say b"}}});
  const std::vector<json> vectors = expected({"say a", "say b"});
  ASSERT_EQ(both.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_EQ(both[i], json({{"index", i}, {"embedding", json::array({vectors[i]})}}));
}

TEST_F(LlamaCppEmbeddingsTest, InputsHaveTwoNamesAndFourShapes) {
  const json one = answer({{"content", "say a"}});
  EXPECT_EQ(one[0].at("embedding")[0], expected("say a")[0]);
  EXPECT_EQ(answer({{"input", "say a"}}), one);
  EXPECT_EQ(answer({{"content", ids("say a")}}), one);
  EXPECT_EQ(answer({{"content", json::array({ids("say a")})}}), one);
  EXPECT_EQ(client_.answer("/embeddings", R"({"content": "say a"})"), one);
}

TEST_F(LlamaCppEmbeddingsTest, NumbersAreNumbersAndOfLengthOne) {
  const json one = answer({{"content", "say a"}});
  EXPECT_EQ(answer({{"content", "say a"}, {"encoding_format", "base64"}}), one);
  EXPECT_EQ(answer({{"content", "say a"}, {"embd_normalize", 2}}), one);
  EXPECT_EQ(refusal({{"content", "say a"}, {"embd_normalize", -1}}).at("param"), "embd_normalize");
  EXPECT_EQ(answer({{"content", "say a"}, {"dimensions", 2}})[0].at("embedding")[0].size(), 2u);
}

TEST_F(LlamaCppEmbeddingsTest, WhatIsWrongIsNamed) {
  EXPECT_EQ(refusal(json::object()).at("code"), "missing_required_parameter");
  EXPECT_EQ(refusal({{"content", nullptr}}).at("param"), "content");
  EXPECT_EQ(refusal({{"content", 5}}).at("param"), "content");
  EXPECT_EQ(refusal({{"input", json::array()}}).at("param"), "input");
  EXPECT_EQ(refusal({{"content", "a"}, {"input", "b"}}).at("param"), "input");
  EXPECT_EQ(refusal({{"content", {1 << 20}}}).at("param"), "content");
  EXPECT_EQ(refusal({{"content", std::string(65, 'a')}}).at("code"), "context_length_exceeded");
  client_.model().no_embeddings = unsupported("it makes none");
  EXPECT_EQ(refusal({{"content", "a"}}).at("code"), "no_embeddings");
}

}  // namespace
}  // namespace pagoda
