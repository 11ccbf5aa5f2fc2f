// /infill, for editors: the text at a cursor.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/api_client.h"

namespace pagoda {
namespace {

using nlohmann::json;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kInfillPath = "/infill";

class InfillTest : public ::testing::Test {
 protected:
  // Posts a body, and returns the text of the prompt.
  std::string prompt_of(const json& body) {
    client_.answer(kInfillPath, json_text(body));
    return client_.last_prompt();
  }

  ApiClient client_;
};

TEST_F(InfillTest, AnswersInLlamaCppsShape) {
  const json answer = client_.answer(
      kInfillPath,
      json({{"input_prefix", "def f():\n"}, {"prompt", "  ret"}, {"input_suffix", "\nf()"}})
          .dump());
  EXPECT_EQ(client_.last_prompt(), "<fim_prefix>def f():\n  ret<fim_suffix>\nf()<fim_middle>");
  EXPECT_THAT(answer.at("content").get<std::string>(), StartsWith("A pagoda"));
  EXPECT_EQ(answer.at("stop"), true);
  EXPECT_EQ(answer.at("stop_type"), "eos");
  EXPECT_EQ(answer.at("truncated"), false);
  EXPECT_GT(answer.at("tokens_predicted"), 0);
  const json& timings = answer.at("timings");
  EXPECT_EQ(timings.at("predicted_n"), answer.at("tokens_predicted"));
  for (const char* name : {"prompt_ms", "predicted_ms"}) {
    EXPECT_GE(timings.at(name), 0) << name;
    EXPECT_LT(timings.at(name), 60000) << name;
  }
}

TEST_F(InfillTest, StreamsItsParts) {
  const json body = {{"input_prefix", "a"}, {"input_suffix", "b"}, {"stream", true}};
  const std::string whole =
      client_.answer(kInfillPath, R"({"input_prefix": "a", "input_suffix": "b"})").at("content");
  std::string text;
  std::vector<json> events;
  for (const std::string& data : client_.event_data(kInfillPath, json_text(body)))
    events.push_back(parse_json(data));
  ASSERT_GE(events.size(), 2u);
  for (const json& event : events) text += event.at("content").get<std::string>();
  EXPECT_EQ(text, whole);
  EXPECT_EQ(events.front().at("stop"), false);
  EXPECT_EQ(events.back().at("stop"), true);
}

TEST_F(InfillTest, SaysWhyItEnded) {
  json body = {{"input_prefix", "a"}, {"input_suffix", "b"}, {"n_predict", 3}};
  EXPECT_EQ(client_.answer(kInfillPath, json_text(body)).at("stop_type"), "limit");
  body = {{"input_prefix", "a"}, {"stop", {"pagoda"}}};
  const json stopped = client_.answer(kInfillPath, json_text(body));
  EXPECT_EQ(stopped.at("stop_type"), "word");
  EXPECT_EQ(stopped.at("stopping_word"), "pagoda");
  EXPECT_EQ(stopped.at("content"), "A ");
}

TEST_F(InfillTest, MayOnlyReadThePrompt) {
  const json answer =
      client_.answer(kInfillPath, R"({"input_prefix": "a", "n_predict": 0, "t_max_prompt_ms": 5})");
  EXPECT_EQ(answer.at("content"), "");
  EXPECT_EQ(answer.at("tokens_predicted"), 0);
  EXPECT_EQ(client_.engine().last_request().sampling.max_tokens, 1);
}

TEST_F(InfillTest, AnswersTheFieldsThatAreAskedFor) {
  const json answer = client_.answer(
      kInfillPath,
      json({{"input_prefix", "a"},
            {"response_fields", {"content", "timings/prompt_n", "timings/none", "content/none"}}})
          .dump());
  EXPECT_EQ(answer.size(), 2u);
  EXPECT_TRUE(answer.contains("content"));
  EXPECT_TRUE(answer.contains("timings/prompt_n"));
}

TEST_F(InfillTest, OtherTextsStandBefore) {
  json body = {{"input_prefix", "a"},
               {"input_extra", {{{"text", "one"}, {"filename", "x.py"}}, {{"text", "two"}}}}};
  const std::string gap = "<fim_prefix>a<fim_suffix><fim_middle>";
  EXPECT_EQ(prompt_of(body), "\n\n--- snippet ---\n\none\n\n--- snippet ---\n\ntwo" + gap);
  FillInFormat& format = *client_.model().fill_in;
  format.repository_id = client_.model().tokenizer->token_to_id("<|im_start|>");
  format.file_id = client_.model().tokenizer->token_to_id("<|endoftext|>");
  EXPECT_EQ(
      prompt_of(body),
      "<|im_start|>project\n<|endoftext|>x.py\none<|endoftext|>file\ntwo<|endoftext|>file\n" + gap);
}

// If texts have more tokens than the context, what is near the cursor stays.
TEST_F(InfillTest, WhatHasNoRoomIsLeftOut) {
  std::string far_prefix, far_suffix;
  for (int i = 0; i < 100000; ++i) far_prefix += "é" + std::to_string(i);
  far_suffix = far_prefix;
  json body = {{"input_prefix", far_prefix + " HERE"},
               {"input_suffix", "THERE " + far_suffix},
               {"n_predict", 64},
               {"input_extra", {{{"text", "one"}}}}};
  const json answer = client_.answer(kInfillPath, json_text(body));
  EXPECT_EQ(answer.at("truncated"), true);
  EXPECT_THAT(client_.last_prompt(), HasSubstr(" HERE<fim_suffix>THERE é0"));
  EXPECT_THAT(client_.last_prompt(), EndsWith("<fim_middle>"));
  const int most = client_.engine().limits().max_model_len;
  EXPECT_LE(answer.at("tokens_evaluated"), most - 64);
  EXPECT_GT(answer.at("tokens_evaluated"), most - 64 - 64);
  // A text that is small enough stays, even if a larger one before it is left out.
  body = {{"input_prefix", "a"}, {"input_extra", {{{"text", far_suffix}}, {{"text", "two"}}}}};
  EXPECT_THAT(prompt_of(body), StartsWith("\n\n--- snippet ---\n\ntwo<fim_prefix>"));
}

TEST_F(InfillTest, ErrorsNameTheField) {
  const std::pair<json, const char*> cases[] = {
      {{{"input_prefix", 1}}, "input_prefix"},
      {{{"input_extra", "a"}}, "input_extra"},
      {{{"input_extra", {1}}}, "input_extra"},
      {{{"input_extra", {{{"filename", "a"}}}}}, "input_extra"},
      {{{"prompt", {1, 2}}}, "prompt"},
      {{{"input_prefix", "a"}, {"n_predict", -2}}, "n_predict"},
  };
  for (const auto& [body, param] : cases)
    EXPECT_EQ(client_.refusal(kInfillPath, json_text(body)).at("param"), param) << body;
  client_.model().fill_in.reset();
  EXPECT_EQ(client_.refusal(kInfillPath, R"({"input_prefix": "a"})").at("code"), "no_fill_in");
}

}  // namespace
}  // namespace pagoda
