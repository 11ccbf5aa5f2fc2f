#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/api_client.h"

namespace pagoda {
namespace {

using nlohmann::json;

constexpr const char* kEmbed = "/api/embed";
constexpr const char* kOlder = "/api/embeddings";

class OllamaEmbeddingsTest : public ::testing::Test {
 protected:
  OllamaEmbeddingsTest() { client_.model().embedding_format.normalizes = false; }
  json embed(const json& body) { return client_.answer(kEmbed, json_text(body)); }
  json raw(const std::string& text) { return fake_embedding(ids(text)); }
  std::vector<int> ids(const std::string& text) {
    return client_.model().tokenizer->encode(text).value();
  }

  ApiClient client_{FakeModelOptions{.max_model_len = 64}};
};

TEST_F(OllamaEmbeddingsTest, OneTextOrMany) {
  const json one = embed({{"model", "fake-model:latest"}, {"input", "say a"}});
  EXPECT_EQ(one.at("model"), "fake-model");
  EXPECT_EQ(one.at("embeddings"), json::array({raw("say a")}));
  EXPECT_EQ(one.at("prompt_eval_count"), ids("say a").size());
  EXPECT_GT(one.at("total_duration"), 0);
  EXPECT_EQ(one.at("load_duration"), 0);
  const json many = embed({{"input", {"say a", "say b"}}, {"options", {{"num_ctx", 9}}}});
  EXPECT_EQ(many.at("embeddings"), json({raw("say a"), raw("say b")}));
  EXPECT_EQ(embed({{"input", "say a"}, {"dimensions", 2}}).at("embeddings").at(0).size(), 2U);
}

TEST_F(OllamaEmbeddingsTest, TheOlderFormHasOne) {
  const json body =
      client_.answer(kOlder, R"({"model": "fake-model", "prompt": "say a", "keep_alive": "5m"})");
  EXPECT_EQ(body, json({{"embedding", raw("say a")}}));
}

TEST_F(OllamaEmbeddingsTest, NothingToEmbedLoadsTheModelWhichIsThere) {
  for (const json& body : {json::object(), json({{"input", ""}}), json({{"input", json::array()}})})
    EXPECT_EQ(embed(body).at("embeddings"), json::array());
  EXPECT_EQ(client_.answer(kOlder, "{}"), json({{"embedding", json::array()}}));
}

TEST_F(OllamaEmbeddingsTest, TheFirstTokensStayWhereItTruncates) {
  const std::string text = "xyz" + std::string(100, 'a');
  embed({{"input", text}});
  const std::vector<int> kept = client_.engine().last_request().prompt_token_ids;
  EXPECT_EQ(kept, ids("xyz" + std::string(61, 'a')));
  client_.answer(kOlder, json({{"prompt", text}}).dump());
  EXPECT_EQ(client_.engine().last_request().prompt_token_ids, kept);
  const json error = client_.refusal(kEmbed, json({{"input", text}, {"truncate", false}}).dump());
  EXPECT_EQ(error.at("code"), "context_length_exceeded");
}

TEST_F(OllamaEmbeddingsTest, ErrorsNameTheField) {
  EXPECT_EQ(client_.refusal(kEmbed, R"({"input": 5})").at("param"), "input");
  EXPECT_EQ(client_.refusal(kEmbed, R"({"input": ["a", ""]})").at("param"), "input");
  EXPECT_EQ(client_.refusal(kEmbed, R"({"input": "a", "dimensions": 9})").at("param"),
            "dimensions");
  EXPECT_EQ(client_.refusal(kOlder, R"({"prompt": ["a"]})").at("param"), "prompt");
  EXPECT_EQ(client_.refusal(kEmbed, R"({"input": "a", "model": "b"})", 404).at("code"),
            "model_not_found");
  client_.model().no_embeddings = unsupported("it makes none");
  EXPECT_EQ(client_.refusal(kOlder, "{}").at("message"), "it makes none");
}

}  // namespace
}  // namespace pagoda
