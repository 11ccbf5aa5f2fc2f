#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>

#include "serving/pooling/embedding_batch.h"
#include "tests/support/api_client.h"
#include "tests/support/eventually.h"
#include "text/gguf_vocabulary.h"

namespace pagoda {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using Numbers = std::vector<float>;

constexpr const char* kEmbeddings = "/v1/embeddings";

// Returns the float32 numbers in base64 text, whose low bytes come first.
Numbers numbers_in_base64(const std::string& text) {
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  std::uint32_t bits = 0;
  int num_bits = 0;
  for (const char c : text) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<std::uint32_t>(kAlphabet.find(c));
    num_bits += 6;
    if (num_bits < 8) continue;
    num_bits -= 8;
    bytes += static_cast<char>(bits >> num_bits & 0xff);
  }
  Numbers numbers;
  for (std::size_t i = 0; i + 4 <= bytes.size(); i += 4) {
    std::uint32_t word = 0;
    for (int k = 3; k >= 0; --k) word = word << 8 | static_cast<unsigned char>(bytes[i + k]);
    numbers.push_back(std::bit_cast<float>(word));
  }
  return numbers;
}

class EmbeddingsTest : public ::testing::Test {
 protected:
  json data(const json& body) { return client_.answer(kEmbeddings, json_text(body)).at("data"); }
  Numbers first(const json& body) { return data(body).at(0).at("embedding").get<Numbers>(); }
  json refusal(const json& body, int status = 400) {
    return client_.refusal(kEmbeddings, json_text(body), status);
  }
  std::vector<int> ids(const std::string& text) {
    return client_.model().tokenizer->encode(text).value();
  }
  std::vector<int> last_ids() { return client_.engine().last_request().prompt_token_ids; }

  ApiClient client_{FakeModelOptions{.max_model_len = 64}};
};

TEST_F(EmbeddingsTest, AnswersInOpenAisShape) {
  const json body =
      client_.answer(kEmbeddings, R"({"input": "hello", "model": "other-name", "user": "me"})");
  EXPECT_EQ(body.at("object"), "list");
  EXPECT_EQ(body.at("model"), "other-name");
  const int num_tokens = static_cast<int>(ids("hello").size());
  EXPECT_EQ(body.at("usage"), json({{"prompt_tokens", num_tokens},
                                    {"total_tokens", num_tokens},
                                    {"prompt_tokens_details", {{"cached_tokens", 0}}}}));
  ASSERT_EQ(body.at("data").size(), 1U);
  const json& one = body.at("data").at(0);
  EXPECT_EQ(one.at("object"), "embedding");
  EXPECT_EQ(one.at("index"), 0);
  double squares = 0;
  for (const float number : one.at("embedding").get<Numbers>())
    squares += static_cast<double>(number) * number;
  EXPECT_NEAR(squares, 1, 1e-6);
}

TEST_F(EmbeddingsTest, InputsComeInFourShapes) {
  const Numbers a = first({{"input", "say a"}});
  const Numbers b = first({{"input", "say b"}});
  EXPECT_NE(a, b);
  EXPECT_EQ(first({{"input", ids("say a")}}), a);
  for (const json& input : {json({"say a", "say b"}), json({ids("say a"), ids("say b")})}) {
    const json both = data({{"input", input}});
    ASSERT_EQ(both.size(), 2U);
    EXPECT_EQ(both.at(0).at("embedding").get<Numbers>(), a);
    EXPECT_EQ(both.at(1).at("embedding").get<Numbers>(), b);
    EXPECT_EQ(both.at(1).at("index"), 1);
  }
}

TEST_F(EmbeddingsTest, NumbersReadBackAsTheSameFloats) {
  client_.model().embedding_format.normalizes = false;
  EXPECT_EQ(first({{"input", "say a"}}), fake_embedding(ids("say a")));
  client_.model().embedding_format.normalizes = true;
  const json base64 = data({{"input", {"say a", "say b"}}, {"encoding_format", "base64"}});
  const json plain = data({{"input", {"say a", "say b"}}, {"encoding_format", "float"}});
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(numbers_in_base64(base64.at(i).at("embedding")),
              plain.at(i).at("embedding").get<Numbers>());
  }
}

TEST_F(EmbeddingsTest, ManyInputsComeInOrderThroughAShortQueue) {
  ApiClient client({.max_queue = 8});
  json inputs = json::array();
  for (int i = 0; i < 2048; ++i) inputs.push_back({i % 200, i / 200, 7});
  client.model().embedding_format.normalizes = false;
  const json all = client.answer(kEmbeddings, json({{"input", inputs}}).dump());
  ASSERT_EQ(all.at("data").size(), 2048U);
  EXPECT_EQ(all.at("usage").at("prompt_tokens"), 3 * 2048);
  for (int i = 0; i < 2048; ++i) {
    const json& one = all.at("data").at(i);
    EXPECT_EQ(one.at("index"), i);
    EXPECT_EQ(one.at("embedding").get<Numbers>(),
              fake_embedding(inputs.at(i).get<std::vector<int>>()));
  }
  EXPECT_THAT(client.get("/metrics").body, HasSubstr(R"(finished_reason="length"} 2048)"));
  inputs.push_back("one more");
  EXPECT_THAT(client.refusal(kEmbeddings, json({{"input", inputs}}).dump()).at("message"),
              HasSubstr("at most 2048 prompts, got 2049"));
}

TEST_F(EmbeddingsTest, DimensionsCutAndNormalise) {
  client_.model().embedding_format.normalizes = false;
  const Numbers cut = first({{"input", "say a"}, {"dimensions", 3}});
  const Numbers whole = fake_embedding(ids("say a"));
  ASSERT_EQ(cut.size(), 3U);
  const double length = std::sqrt(static_cast<double>(whole[0]) * whole[0] +
                                  static_cast<double>(whole[1]) * whole[1] +
                                  static_cast<double>(whole[2]) * whole[2]);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(cut[i], static_cast<float>(whole[i] / length));
  EXPECT_EQ(first({{"input", "say a"}, {"dimensions", 8}}), whole);
  EXPECT_EQ(refusal({{"input", "say a"}, {"dimensions", 9}}).at("message"),
            "'dimensions': expected at most 8, got 9");
  EXPECT_EQ(refusal({{"input", "say a"}, {"dimensions", 0}}).at("param"), "dimensions");
}

TEST_F(EmbeddingsTest, TheModelsOwnDimensionsLeaveNumbersAsTheyAre) {
  const Numbers whole = first({{"input", "say a"}});
  client_.model().embedding_format.dimensions = 3;
  EXPECT_EQ(first({{"input", "say a"}}), Numbers(whole.begin(), whole.begin() + 3));
  EXPECT_EQ(first({{"input", "say a"}, {"dimensions", 8}}), whole);
}

TEST_F(EmbeddingsTest, PromptsStandBeforeTextsByName) {
  EXPECT_THAT(refusal({{"input", "a"}, {"prompt_name", "query"}}).at("message"),
              HasSubstr("this model has no prompts"));
  EmbeddingFormat& format = client_.model().embedding_format;
  format.prompts = {{"document", "say "}, {"query", "look for: "}};
  format.default_prompt = "look for: ";
  data({{"input", {"say a"}}});
  EXPECT_EQ(last_ids(), ids("look for: say a"));
  data({{"input", "a"}, {"prompt_name", "document"}});
  EXPECT_EQ(last_ids(), ids("say a"));
  data({{"input", ids("a")}});
  EXPECT_EQ(last_ids(), ids("a"));
  client_.answer("/api/embed", R"({"input": "a"})");
  EXPECT_EQ(last_ids(), ids("look for: a"));
  const json error = refusal({{"input", "a"}, {"prompt_name", "title"}});
  EXPECT_EQ(error.at("param"), "prompt_name");
  EXPECT_THAT(error.at("message"), HasSubstr("expected document or query, got title"));
}

TEST_F(EmbeddingsTest, TheModelsOwnLengthLeavesTheFirstTokens) {
  client_.model().embedding_format.max_tokens = 3;
  data({{"input", "uvwxyz"}});
  EXPECT_EQ(last_ids(), ids("uvw"));
  data({{"input", std::vector<int>({1, 2, 3, 4})}});
  EXPECT_EQ(last_ids(), std::vector<int>({1, 2, 3}));
  data({{"input", "uvwxyz"}, {"truncate_prompt_tokens", -1}});
  EXPECT_EQ(last_ids(), ids("xyz"));
  client_.answer("/api/embed", R"({"input": "uvwxyz"})");
  EXPECT_EQ(last_ids(), ids("uvw"));
  EXPECT_EQ(client_.post("/api/embed", R"({"input": "uvwxyz", "truncate": false})").status, 400);
}

TEST_F(EmbeddingsTest, TheLastTokensStayWhereItTruncates) {
  const std::vector<int> three = {1, 2, 3};
  data({{"input", three}, {"truncate_prompt_tokens", 2}});
  EXPECT_EQ(last_ids(), std::vector<int>({2, 3}));
  data({{"input", three}, {"truncate_prompt_tokens", 3}});
  EXPECT_EQ(last_ids(), three);
  data({{"input", std::string(100, 'a') + "xyz"}, {"truncate_prompt_tokens", 3}});
  EXPECT_EQ(last_ids(), ids("xyz"));
  data({{"input", std::string(100, 'a')}, {"truncate_prompt_tokens", -1}});
  EXPECT_EQ(last_ids().size(), 64U);
  for (const int wrong : {0, -2, 65}) {
    EXPECT_EQ(refusal({{"input", "a"}, {"truncate_prompt_tokens", wrong}}).at("param"),
              "truncate_prompt_tokens");
  }
}

TEST_F(EmbeddingsTest, WhatTheTokenizerPutsAroundATextIsNotCut) {
  client_.model().tokenizer = Tokenizer::from_gguf({.model = "gpt2",
                                                    .pre = "gpt-2",
                                                    .tokens = {"a", "b", "<s>", "</s>"},
                                                    .token_types = {1, 1, 3, 3},
                                                    .bos_token_id = 2,
                                                    .eos_token_id = 3,
                                                    .add_bos_token = true,
                                                    .add_eos_token = true})
                                  .value();
  data({{"input", "aab"}, {"truncate_prompt_tokens", 4}});
  EXPECT_EQ(last_ids(), std::vector<int>({2, 0, 1, 3}));
  data({{"input", "aab"}, {"truncate_prompt_tokens", 2}});
  EXPECT_EQ(last_ids(), std::vector<int>({1, 3}));
  data({{"input", "aab"}, {"truncate_prompt_tokens", 2}, {"add_special_tokens", false}});
  EXPECT_EQ(last_ids(), std::vector<int>({0, 1}));
}

TEST_F(EmbeddingsTest, AnInputMayBeAsLongAsTheContext) {
  EXPECT_EQ(client_.post(kEmbeddings, json({{"input", std::string(64, 'a')}}).dump()).status, 200);
  for (const std::size_t num_tokens : {65, 5000}) {
    const json error = refusal({{"input", std::string(num_tokens, 'a')}});
    EXPECT_EQ(error.at("code"), "context_length_exceeded");
    EXPECT_EQ(error.at("param"), "input");
    EXPECT_THAT(error.at("message"), HasSubstr("maximum context length is 64 tokens"));
  }
  EXPECT_EQ(refusal({{"input", std::vector<int>(65, 1)}}).at("code"), "context_length_exceeded");
}

TEST_F(EmbeddingsTest, ErrorsNameTheField) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({})", "input"},
      {R"({"input": []})", "input"},
      {R"({"input": ""})", "input"},
      {R"({"input": ["a", ""]})", "input"},
      {R"({"input": [[]]})", "input"},
      {R"({"input": {"a": 1}})", "input"},
      {R"({"input": [100000]})", "input"},
      {R"({"input": [-1]})", "input"},
      {R"({"input": "a", "encoding_format": "bytes"})", "encoding_format"},
      {R"({"input": "a", "encoding_format": 1})", "encoding_format"},
      {R"({"input": "a", "priority": "high"})", "priority"},
      {R"({"input": "a", "normalize": false})", "normalize"},
      {R"({"input": "a", "messages": [{"role": "user", "content": "a"}]})", "messages"}};
  for (const auto& [body, param] : cases) {
    const json error = client_.refusal(kEmbeddings, body);
    EXPECT_EQ(error.at("param"), param) << body;
    EXPECT_EQ(error.at("type"), "invalid_request_error");
  }
  EXPECT_EQ(refusal({{"input", "a"}, {"model", "none"}}, 404).at("code"), "model_not_found");
  EXPECT_THAT(refusal({{"input", "fail it broke"}}, 500).at("message"), HasSubstr("it broke"));
}

TEST_F(EmbeddingsTest, AModelThatMakesNoneSaysWhy) {
  client_.model().no_embeddings = unsupported("[embedding] 3_Dense: nothing here computes it");
  const json error = refusal({{"input", "a"}});
  EXPECT_EQ(error.at("code"), "no_embeddings");
  EXPECT_THAT(error.at("message"), HasSubstr("3_Dense"));
}

TEST_F(EmbeddingsTest, AModelWithoutATokenizerTakesTokenIds) {
  const std::vector<int> some = ids("say a");
  client_.model().tokenizer = nullptr;
  client_.model().no_tokenizer = not_found("there is no tokenizer.json");
  const json error = refusal({{"input", "a"}});
  EXPECT_EQ(error.at("code"), "no_tokenizer");
  EXPECT_THAT(error.at("message"), HasSubstr("tokenizer.json"));
  EXPECT_EQ(data({{"input", some}}).size(), 1U);
}

TEST_F(EmbeddingsTest, TheEngineGetsPriorityAndSalt) {
  data({{"input", "a"}, {"priority", 3}, {"cache_salt", "x"}});
  EXPECT_EQ(client_.engine().last_request().priority, 3);
  EXPECT_EQ(client_.engine().last_request().cache_salt, "x");
}

TEST(EmbeddingsQueue, AFullQueueIs429) {
  ApiClient client({.max_queue = 1});
  const auto waiting = client.engine().submit(
      {.prompt_token_ids = client.model().tokenizer->encode("think 9").value()},
      [](const OutputEvent&) {});
  ASSERT_TRUE(waiting.ok());
  const HttpResponse response = client.post(kEmbeddings, R"({"input": ["a", "b"]})");
  EXPECT_EQ(response.status, 429);
  EXPECT_THAT(response.headers, ::testing::Contains(::testing::Pair("Retry-After", "1")));
  client.engine().cancel(*waiting);
}

TEST(EmbeddingsQueue, AClientThatGoesAwayCancelsThem) {
  ApiClient client({.max_queue = 200});
  const json body = {{"input", std::vector<std::string>(100, "think 9")}};
  HttpReply reply =
      client.router().handle({.method = "POST",
                              .path = kEmbeddings,
                              .body = json_text(body),
                              .held = std::make_shared<MemoryAccount>(client.service().memory)},
                             [] {});
  auto& pending = std::get<std::unique_ptr<PendingReply>>(reply.content);
  ASSERT_TRUE(eventually([&] {
    if (auto next = pending->poll()) reply.become(*std::move(next));
    return client.engine().stats().num_running == EmbeddingBatch::kMaxInFlight;
  }));
  reply = {};
  EXPECT_TRUE(eventually(
      [&] { return client.engine().num_cancelled_samples() == EmbeddingBatch::kMaxInFlight; }));
  EXPECT_THAT(client.get("/metrics").body, HasSubstr(R"(finished_reason="abort"} 100)"));
}

TEST(EmbeddingsMemory, AnAnswerCountsBeforeItIsMade) {
  ApiClient client;
  client.service().memory = std::make_shared<RequestMemory>(100'000);
  const auto ask = [&](int num_inputs) {
    return json({{"input", std::vector<std::string>(num_inputs, "a")}}).dump();
  };
  EXPECT_EQ(client.post(kEmbeddings, ask(300)).status, 200);
  EXPECT_EQ(client.refusal(kEmbeddings, ask(500)).at("param"), "input");
}

}  // namespace
}  // namespace pagoda
