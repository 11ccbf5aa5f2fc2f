// Answers that fill the gap between two texts, in /v1/completions and in Ollama's API.
#include <gmock/gmock.h>

#include <algorithm>

#include "tests/support/api_client.h"

namespace pagoda {
namespace {

constexpr const char* kFillInPath = "/v1/completions";

class FillInTest : public ::testing::Test {
 protected:
  ApiClient client_;
};

TEST_F(FillInTest, AnAnswerMayStandBetweenTwoTexts) {
  const FillInFormat format = client_.model().fill_in.value();
  const auto prompt_of = [&](const std::string& more) {
    client_.answer(kFillInPath, R"({"prompt": "say a", "suffix": "<eos>z")" + more + "}");
    return client_.engine().last_request().prompt_token_ids;
  };
  const Tokenizer& tokenizer = *client_.model().tokenizer;
  const EncodeOptions as_text = {.add_special_tokens = false, .parse_special = false};
  const std::vector<int> prefix = *tokenizer.encode("say a", as_text);
  const std::vector<int> suffix = *tokenizer.encode("<eos>z", as_text);
  std::vector<int> expected = {format.prefix_id};
  expected.insert(expected.end(), prefix.begin(), prefix.end());
  expected.push_back(format.suffix_id);
  expected.insert(expected.end(), suffix.begin(), suffix.end());
  expected.push_back(format.middle_id.value());
  EXPECT_EQ(prompt_of(R"(, "add_special_tokens": false)"), expected);
  const std::pair<const char*, const char*> refused[] = {
      {R"({"prompt": "a", "suffix": "z", "echo": true})", "echo"},
      {R"({"prompt": [1, 2], "suffix": "z"})", "prompt"},
      {R"({"prompt": "a", "suffix": 5})", "suffix"},
  };
  for (const auto& [body, param] : refused)
    EXPECT_EQ(client_.refusal(kFillInPath, body).at("param"), param) << body;
  client_.answer(kFillInPath, R"({"prompt": "say a", "suffix": "", "echo": true})");
}

TEST_F(FillInTest, OllamasToo) {
  const FillInFormat format = client_.model().fill_in.value();
  client_.answer("/api/generate", R"({"prompt": "say a", "suffix": "z", "stream": false})");
  const std::vector<int> ids = client_.engine().last_request().prompt_token_ids;
  const auto prefix = std::ranges::find(ids, format.prefix_id);
  ASSERT_NE(prefix, ids.end());
  const std::vector<int> behind(prefix + 1, ids.end());
  EXPECT_EQ(*client_.model().tokenizer->decode(behind, false), "say a<fim_suffix>z<fim_middle>");
}

TEST_F(FillInTest, OtherModelsRefuseIt) {
  client_.model().fill_in.reset();
  const char* body = R"({"prompt": "a", "suffix": "z"})";
  for (const char* path : {kFillInPath, "/api/generate"}) {
    const HttpResponse refused = client_.post(path, body);
    EXPECT_EQ(refused.status, 400) << path;
    EXPECT_THAT(refused.body, ::testing::HasSubstr("'suffix': this model has no tokens")) << path;
  }
}

}  // namespace
}  // namespace pagoda
