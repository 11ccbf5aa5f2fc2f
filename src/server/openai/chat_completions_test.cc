#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/api_client.h"

namespace pagoda {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr const char* kPath = "/v1/chat/completions";

std::string ask(const std::string& content, const std::string& more = "") {
  return R"({"messages": [{"role": "user", "content": ")" + content + R"("}])" +
         (more.empty() ? "" : ", ") + more + "}";
}

class ChatCompletionsTest : public ::testing::Test {
 protected:
  std::string prompt_of(const std::string& body) {
    client_.answer(kPath, body);
    return client_.last_prompt();
  }

  ApiClient client_;
};

TEST_F(ChatCompletionsTest, AnswersInOpenAisShape) {
  const json body = client_.answer(kPath, ask("say hello"));
  EXPECT_TRUE(body.at("id").get<std::string>().starts_with("chatcmpl-"));
  EXPECT_EQ(body.at("object"), "chat.completion");
  EXPECT_EQ(
      body.at("choices"),
      parse_json(
          R"([{"index": 0, "message": {"role": "assistant", "content": "hello", "refusal": null},
                                                 "logprobs": null, "finish_reason": "stop", "stop_reason": null}])"));
}

TEST_F(ChatCompletionsTest, UsageCountsTheTokensOfThoughts) {
  ApiClient client({.thinks = true});
  const auto usage_of = [&](const std::string& more) {
    return client.answer(kPath, ask("say <think>So. </think> Yes.", R"("n": 2)" + more))
        .at("usage");
  };
  const json usage = usage_of("");
  const int num_tokens = usage.at("completion_tokens_details").at("reasoning_tokens");
  EXPECT_GT(num_tokens, 2);
  EXPECT_LT(num_tokens, usage.at("completion_tokens"));
  EXPECT_EQ(usage_of(R"(, "include_reasoning": false)"), usage);
  const json in_content = usage_of(R"(, "reasoning_format": "none")");
  EXPECT_EQ(in_content.at("completion_tokens_details").at("reasoning_tokens"), 0);
  const auto events = client.events(
      kPath, ask("say <think>So. </think> Yes.",
                 R"("n": 2, "stream": true, "stream_options": {"include_usage": true})"));
  EXPECT_EQ(events.back().at("usage"), usage);
}

TEST_F(ChatCompletionsTest, MessagesGoThroughTheTemplate) {
  EXPECT_EQ(
      prompt_of(
          R"({"messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content":
                          [{"type": "text", "text": "say"}, {"type": "text", "text": "it"}]}]})"),
      "<|im_start|>system\nBe "
      "kind.<|im_end|>\n<|im_start|>user\nsay\nit<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(
      prompt_of(
          R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}],
                          "add_generation_prompt": false, "continue_final_message": true, "max_tokens": 1})"),
      "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nb");
}

TEST_F(ChatCompletionsTest, ObjectsReachTheTemplateInTheClientsOrder) {
  const std::string prompt = prompt_of(
      R"({"messages": [{"tool_calls": [{"type": "function", "function": {"name": "f", "arguments":
                        {"zone": {"y": 1, "b": 2}, "at": 3}}, "id": "1"}], "role": "assistant", "content": null},
                        {"role": "user", "content": "say a"}],
          "chat_template_kwargs": {"shown": {"z": [{"d": 1, "c": 2}], "a": 3}}})");
  EXPECT_EQ(
      prompt,
      R"({"z": [{"d": 1, "c": 2}], "a": 3}<|im_start|>assistant)"
      "\n"
      R"([{"type": "function", "function": {"name": "f", "arguments": {"zone": {"y": 1, "b": 2}, "at": 3}}, "id": "1"}])"
      "<|im_end|>\n<|im_start|>user\nsay a<|im_end|>\n<|im_start|>assistant\n");
}

TEST_F(ChatCompletionsTest, AnAnswerSentBackAsTheClientDumpsItKeepsItsText) {
  EXPECT_EQ(
      prompt_of(
          R"({"messages": [{"content": "b", "refusal": null, "role": "assistant", "annotations": null,
                            "audio": null, "function_call": null, "tool_calls": null},
                           {"role": "user", "content": "say a"}]})"),
      "<|im_start|>assistant\nb<|im_end|>\n<|im_start|>user\nsay "
      "a<|im_end|>\n<|im_start|>assistant\n");
}

TEST_F(ChatCompletionsTest, TheRestOfTheContextIsTheDefault) {
  const json body = client_.answer(kPath, ask("count 9999"));
  EXPECT_EQ(body.at("usage").at("total_tokens"), 2048);
  client_.answer(kPath, ask("say a", R"("max_tokens": 5, "max_completion_tokens": 7)"));
  EXPECT_EQ(client_.engine().last_request().sampling.max_tokens, 7);
}

TEST_F(ChatCompletionsTest, LogprobsCarryBytes) {
  const json body = client_.answer(kPath, ask("say é", R"("logprobs": true, "top_logprobs": 2)"));
  const json& content = body.at("choices").at(0).at("logprobs").at("content");
  ASSERT_EQ(content.size(), 3u);
  EXPECT_EQ(content[0].at("token"), "\\xc3");
  EXPECT_EQ(content[0].at("bytes"), parse_json("[195]"));
  EXPECT_EQ(content[0].at("logprob"), FakeEngine::logprob_of(195));
  EXPECT_EQ(content[0].at("top_logprobs").size(), 2u);
  const json plain = client_.answer(kPath, ask("say a", R"("logprobs": true)"));
  EXPECT_TRUE(
      plain.at("choices").at(0).at("logprobs").at("content").at(0).at("top_logprobs").empty());
}

TEST_F(ChatCompletionsTest, StreamsRoleTextReasonAndUsage) {
  const auto events = client_.events(
      kPath,
      ask("say hi ho",
          R"("stream": true, "n": 2, "return_token_ids": true, "stream_options": {"include_usage": true})"));
  std::vector<std::string> texts(2);
  std::vector<int> num_roles(2), num_ends(2);
  for (std::size_t i = 0; i + 1 < events.size(); ++i) {
    EXPECT_EQ(events[i].at("object"), "chat.completion.chunk");
    EXPECT_EQ(events[i].contains("prompt_token_ids"), i == 0);
    const json& choice = events[i].at("choices").at(0);
    const int index = choice.at("index");
    const json& delta = choice.at("delta");
    if (delta.contains("role")) {
      EXPECT_EQ(texts[index], "");
      ++num_roles[index];
    } else {
      EXPECT_TRUE(choice.contains("token_ids"));
    }
    texts[index] += delta.value("content", "");
    if (!choice.at("finish_reason").is_null()) ++num_ends[index];
  }
  EXPECT_EQ(texts, (std::vector<std::string>{"hi ho", "hi ho"}));
  EXPECT_EQ(num_roles, (std::vector<int>{1, 1}));
  EXPECT_EQ(num_ends, (std::vector<int>{1, 1}));
  EXPECT_EQ(events.back().at("usage").at("completion_tokens"), 12);
}

TEST_F(ChatCompletionsTest, UsageMayComeWithEveryChunk) {
  const auto events = client_.events(
      kPath,
      ask("say abc", R"("stream": true, "stream_options": {"continuous_usage_stats": true})"));
  int last = 0;
  for (const json& event : events) {
    const int tokens = event.at("usage").at("completion_tokens");
    EXPECT_GE(tokens, last);
    last = tokens;
  }
  EXPECT_EQ(last, 4);
}

TEST_F(ChatCompletionsTest, AFailureInAStreamIsItsLastEvent) {
  const auto events = client_.events(kPath, ask("fail it broke", R"("stream": true)"));
  EXPECT_EQ(events.back().at("error").at("message"), "it broke");
  EXPECT_EQ(client_.refusal(kPath, ask("fail it broke"), 500).at("message"), "it broke");
}

TEST_F(ChatCompletionsTest, EchoPutsTheLastMessageBefore) {
  const json body = client_.answer(
      kPath,
      R"({"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "So: "}],
      "echo": true, "add_generation_prompt": false, "continue_final_message": true, "max_tokens": 4})");
  EXPECT_TRUE(
      body.at("choices").at(0).at("message").at("content").get<std::string>().starts_with("So: "));
}

TEST_F(ChatCompletionsTest, PromptLogprobsAndIdsStandAtTheTop) {
  const json body =
      client_.answer(kPath, ask("say a", R"("prompt_logprobs": 0, "return_token_ids": true)"));
  EXPECT_EQ(body.at("prompt_logprobs").size(), body.at("prompt_token_ids").size());
  EXPECT_TRUE(body.at("prompt_logprobs").at(0).is_null());
  EXPECT_EQ(body.at("choices").at(0).at("token_ids").size(), 2u);
}

TEST_F(ChatCompletionsTest, ALongPromptIsCutWhereThatIsAsked) {
  const auto ids_with = [&](const std::string& more) {
    const json body = client_.answer(kPath, ask("say a", R"("return_token_ids": true)" + more));
    const std::vector<int> ids = body.at("prompt_token_ids");
    EXPECT_EQ(body.at("usage").at("prompt_tokens"), ids.size());
    EXPECT_EQ(client_.engine().last_request().prompt_token_ids, ids);
    return ids;
  };
  const std::vector<int> whole = ids_with("");
  const std::vector<int> cut = ids_with(R"(, "truncate_prompt_tokens": 9)");
  EXPECT_EQ(cut, std::vector<int>(whole.end() - 9, whole.end()));
  EXPECT_EQ(ids_with(R"(, "truncate_prompt_tokens": 1000)"), whole);
  EXPECT_EQ(ids_with(R"(, "truncate_prompt_tokens": -1)"), whole);
}

TEST_F(ChatCompletionsTest, ACutPromptLeavesRoomForTheAnswer) {
  const std::string longest(3000, 'x');
  EXPECT_EQ(client_.refusal(kPath, ask(longest)).at("code"), "context_length_exceeded");
  for (const auto& [more, num_tokens] : std::initializer_list<std::pair<const char*, int>>{
           {R"("truncate_prompt_tokens": -1)", 2047},
           {R"("truncate_prompt_tokens": -1, "max_tokens": 48)", 2000},
           {R"("truncate_prompt_tokens": -1, "max_tokens": 5000)", 1},
           {R"("truncate_prompt_tokens": 2047)", 2047}}) {
    EXPECT_EQ(client_.answer(kPath, ask(longest, more)).at("usage").at("prompt_tokens"), num_tokens)
        << more;
  }
  EXPECT_EQ(client_.refusal(kPath, ask(longest, R"("truncate_prompt_tokens": 2048)")).at("code"),
            "context_length_exceeded");
  for (const char* wrong : {"0", "-2", "2049", "1.5"}) {
    const std::string more = fmt::format(R"("truncate_prompt_tokens": {})", wrong);
    EXPECT_EQ(client_.refusal(kPath, ask("a", more)).at("param"), "truncate_prompt_tokens");
  }
}

TEST_F(ChatCompletionsTest, BadInputIsRefusedByName) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({})", "messages"},
      {R"({"messages": []})", "messages"},
      {R"({"messages": "hi"})", "messages"},
      {R"({"messages": [1]})", "messages"},
      {R"({"messages": [{"content": "a"}]})", "messages"},
      {R"({"messages": [{"role": "robot", "content": "a"}]})", "messages"},
      {R"({"messages": [{"role": "user"}]})", "messages"},
      {R"({"messages": [{"role": "user", "content": 5}]})", "messages"},
      {R"({"messages": [{"role": "user", "content": [{"type": "text"}]}]})", "messages"},
      {ask("a", R"("tools": [{"type": "function"}])"), "tools"},
      {ask("a", R"("tool_choice": "required")"), "tool_choice"},
      {ask("a", R"("think": 1)"), "think"},
      {R"({"messages": [{"role": "user", "content": "a", "name": 5}]})", "messages"},
      {R"({"messages": [{"role": "user", "content": "a", "images": ["x"]}]})", "messages"},
      {ask("a", R"("response_format": {"type": "json_schema"})"), "response_format"},
      {ask("a", R"("reasoning_effort": "much")"), "reasoning_effort"},
      {ask("a", R"("modalities": ["audio"])"), "modalities"},
      {ask("a", R"("max_tokens": 0)"), "max_tokens"},
      {ask("a", R"("max_completion_tokens": 1.5)"), "max_completion_tokens"},
      {ask("a", R"("logprobs": 3)"), "logprobs"},
      {ask("a", R"("top_logprobs": 2)"), "top_logprobs"},
      {ask("a", R"("chat_template_kwargs": [])"), "chat_template_kwargs"},
      {ask("a", R"("chat_template_kwargs": {"messages": []})"), "chat_template_kwargs"},
      {ask("a", R"("continue_final_message": true)"), "continue_final_message"},
  };
  for (const auto& [body, param] : cases)
    EXPECT_EQ(client_.refusal(kPath, body).at("param"), param) << body;
  const json image = client_.refusal(kPath, R"({"messages": [{"role": "user", "content":
      [{"type": "image_url", "image_url": {"url": "data:"}}]}]})");
  EXPECT_EQ(image.at("message"), "'messages[0].content': images are not read, only texts");
  const json sound = client_.refusal(kPath, R"({"messages": [{"role": "user", "content":
      [{"type": "input_audio", "input_audio": {"data": ""}}]}]})");
  EXPECT_EQ(sound.at("message"),
            "'messages[0].content': parts of type 'input_audio' are not supported, only 'text'");
}

TEST_F(ChatCompletionsTest, NeutralValuesAreAccepted) {
  client_.answer(
      kPath,
      ask("say a", R"("tools": [], "tool_choice": "none", "response_format": {"type": "text"},
      "modalities": ["text"], "parallel_tool_calls": true, "top_logprobs": 0, "store": false, "service_tier": "auto")"));
}

TEST(ChatWithoutTemplate, IsRefused) {
  ApiClient client({.has_chat_template = false});
  EXPECT_THAT(client.refusal(kPath, ask("a")).at("message").get<std::string>(),
              HasSubstr("no chat template"));
}

}  // namespace
}  // namespace pagoda
