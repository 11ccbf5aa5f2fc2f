// /v1/messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "server/anthropic/messages_request.h"
#include "tests/support/api_client.h"

namespace pagoda {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kMessagesPath = "/v1/messages";

class MessagesTest : public ::testing::Test {
 protected:
  static json ask(const std::string& content, json more = json::object()) {
    more["messages"] = {{{"role", "user"}, {"content", content}}};
    if (!more.contains("max_tokens")) more["max_tokens"] = 200;
    return more;
  }
  json answer(const json& body) { return client_.answer(kMessagesPath, json_text(body)); }
  std::string prompt() { return client_.last_prompt(); }
  std::vector<json> events(json body) {
    body["stream"] = true;
    return client_.named_events(kMessagesPath, json_text(body));
  }

  ApiClient client_;
};

TEST_F(MessagesTest, AnswersInAnthropicsShape) {
  const json body = answer(ask("say hello", {{"system", "Be kind."}}));
  EXPECT_TRUE(body.at("id").get<std::string>().starts_with("msg_"));
  EXPECT_EQ(body.at("type"), "message");
  EXPECT_EQ(body.at("content"), parse_json(R"([{"type": "text", "text": "hello"}])"));
  EXPECT_EQ(body.at("stop_reason"), "end_turn");
  EXPECT_GT(body.at("usage").at("input_tokens"), 0);
  EXPECT_EQ(prompt(),
            "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nsay hello<|im_end|>\n"
            "<|im_start|>assistant\n");
}

TEST_F(MessagesTest, SaysWhyAnAnswerEnded) {
  EXPECT_EQ(answer(ask("count 100", {{"max_tokens", 3}})).at("stop_reason"), "max_tokens");
  const json stopped = answer(ask("count 100", {{"stop_sequences", {" 4"}}}));
  EXPECT_EQ(stopped.at("stop_reason"), "stop_sequence");
  EXPECT_EQ(stopped.at("stop_sequence"), " 4");
}

TEST_F(MessagesTest, BlocksBecomeMessages) {
  json body = ask("");
  body["messages"] = parse_json(R"([
      {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
      {"role": "assistant", "content": [{"type": "thinking", "thinking": "t", "signature": ""},
        {"type": "text", "text": "c"}, {"type": "tool_use", "id": "1", "name": "f", "input": {"x": 1}}]},
      {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1",
        "content": [{"type": "text", "text": "d"}]}, {"type": "text", "text": "say e"}]}])");
  answer(body);
  EXPECT_EQ(prompt(),
            "<|im_start|>user\na\nb<|im_end|>\n<|im_start|>assistant\nc"
            R"([{"id": "1", "type": "function", "function": {"name": "f", "arguments": {"x": 1}}}])"
            "<|im_end|>\n<|im_start|>tool\nd<|im_end|>\n<|im_start|>user\nsay e<|im_end|>\n"
            "<|im_start|>assistant\n");
}

TEST_F(MessagesTest, AnAnswerThatIsBegunGoesOn) {
  json body = ask("say a");
  body["messages"].push_back({{"role", "assistant"}, {"content", "Well"}});
  answer(body);
  EXPECT_THAT(prompt(), ::testing::EndsWith("<|im_start|>assistant\nWell"));
}

TEST_F(MessagesTest, CallsAndThoughtsAreBlocksWholeAndStreamed) {
  client_.model().answer_format.thought = ThoughtMarks{"<think>", "</think>"};
  const json body = ask(
      R"(say <think>So.</think> Look: <tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>)",
      {{"tools", parse_json(R"([{"name": "f", "input_schema": {"type": "object"}}])")}});
  const json whole = answer(body);
  EXPECT_EQ(whole.at("stop_reason"), "tool_use");
  const json& blocks = whole.at("content");
  ASSERT_EQ(blocks.size(), 3u);
  EXPECT_EQ(blocks[0].at("thinking"), "So.");
  EXPECT_EQ(blocks[1].at("text"), "Look:");
  EXPECT_EQ(blocks[2].at("name"), "f");
  EXPECT_EQ(blocks[2].at("input"), json({{"a", 1}}));

  const std::vector<json> all = events(body);
  std::map<int, std::string> texts;
  for (const json& event : all) {
    if (event.at("type") != "content_block_delta") continue;
    for (const char* key : {"text", "thinking", "partial_json"})
      texts[event.at("index")] += event.at("delta").value(key, "");
  }
  EXPECT_EQ(all.front().at("type"), "message_start");
  EXPECT_EQ(texts[0], "So.");
  EXPECT_EQ(texts[1], "Look:");
  EXPECT_EQ(texts[2], R"({"a": 1})");
  ASSERT_GE(all.size(), 2u);
  EXPECT_EQ(all[all.size() - 2].at("delta").at("stop_reason"), "tool_use");
  EXPECT_EQ(all.back().at("type"), "message_stop");
}

TEST_F(MessagesTest, ACallThatIsNotWholeIsText) {
  const json tools = parse_json(R"([{"name": "f", "input_schema": {"type": "object"}}])");
  for (const std::string text :
       {R"(<tool_call>{"name": "f", "arguments": {"a": "b)",
        R"(Look: <tool_call>{"name": "f", "arguments": {"a": NaN}}</tool_call>)"}) {
    const json body = ask("say " + text, {{"tools", tools}});
    const json whole = answer(body);
    EXPECT_EQ(whole.at("stop_reason"), "end_turn");
    EXPECT_EQ(whole.at("content"), json({{{"type", "text"}, {"text", text}}}));
    std::string streamed;
    for (const json& event : events(body)) {
      if (event.at("type") == "content_block_delta")
        streamed += event.at("delta").at("text").get<std::string>();
    }
    EXPECT_EQ(streamed, text);
  }
  const json cut = answer(ask(R"(say <tool_call>{"name": "f", "arguments": {"a": "b"}})",
                              {{"tools", tools}, {"max_tokens", 42}}));
  EXPECT_EQ(cut.at("stop_reason"), "max_tokens");
  EXPECT_EQ(cut.at("content").at(0).at("type"), "text");
}

TEST_F(MessagesTest, AThoughtHasItsBudget) {
  client_.model().answer_format.thought = ThoughtMarks{"<think>", "</think>"};
  for (const json& two : {json(2), json(2.0)}) {
    answer(ask("say a", {{"thinking", {{"type", "enabled"}, {"budget_tokens", two}}}}));
    EXPECT_TRUE(client_.may_begin("<think>ab</think>ab"));
    EXPECT_FALSE(client_.may_begin("<think>abc"));
  }
  answer(ask("say a", {{"thinking", {{"type", "enabled"}}}}));
  EXPECT_TRUE(client_.may_begin("<think>abc"));
  for (const json& wrong : {json(-1), json(1.5), json("2"), json(5000000000)}) {
    const json body = ask("a", {{"thinking", {{"type", "enabled"}, {"budget_tokens", wrong}}}});
    EXPECT_EQ(client_.refusal(kMessagesPath, json_text(body)).at("param"),
              "thinking.budget_tokens");
  }
}

TEST_F(MessagesTest, AFailureEndsTheStream) {
  const std::vector<json> all = events(ask("fail it broke"));
  EXPECT_EQ(all.back().at("type"), "error");
  EXPECT_EQ(all.back().at("request_id"), "req-1");
  EXPECT_THAT(all.back().at("error").at("message").get<std::string>(), HasSubstr("it broke"));
}

TEST_F(MessagesTest, CountsTokens) {
  json body = ask("say a");
  body.erase("max_tokens");
  const json count = client_.answer("/v1/messages/count_tokens", json_text(body));
  const json usage = answer(ask("say a")).at("usage");
  EXPECT_EQ(count.at("input_tokens"),
            usage.at("input_tokens").get<int>() + usage.at("cache_read_input_tokens").get<int>());
}

TEST_F(MessagesTest, CountsMoreTokensThanTheContextHas) {
  ApiClient client({.max_model_len = 64});
  const std::string body = ask(std::string(200, 'a')).dump();
  EXPECT_EQ(client.refusal(kMessagesPath, body).at("code"), "context_length_exceeded");
  const json count = client.answer("/v1/messages/count_tokens", body);
  EXPECT_EQ(count, client_.answer("/v1/messages/count_tokens", body));
  EXPECT_GT(count.at("input_tokens"), 64);
}

TEST_F(MessagesTest, WhatIsCountedIsCheckedAsWhatIsAnswered) {
  const std::string path = "/v1/messages/count_tokens";
  const std::pair<json, const char*> wrong[] = {
      {{{"guided_choice", json::array()}}, "guided_choice"},
      {{{"structured_outputs", {{"regex", "["}}}}, "structured_outputs"},
      {{{"guided_whitespace_pattern", "x"}}, "guided_whitespace_pattern"},
      {{{"logit_bias", {{"1000000", 1}}}}, "logit_bias"}};
  for (const auto& [more, param] : wrong)
    EXPECT_EQ(client_.refusal(path, ask("say a", more).dump()).at("param"), param) << more;
  const json beyond = ask("say a", {{"stop_token_ids", {1000000}}});
  EXPECT_THAT(client_.refusal(path, json_text(beyond)).at("message"), HasSubstr("stop_token_ids"));
  client_.answer(path, ask("say a", {{"guided_choice", {"a"}}}).dump());
}

TEST_F(MessagesTest, GrammarsHoldTheText) {
  for (const json& more :
       {json{{"structured_outputs", {{"choice", {"yes", "no"}}}}}, json{{"regex", "a"}},
        json{{"response_format", {{"type", "json_object"}}}}}) {
    answer(ask("say a", more));
    EXPECT_NE(client_.engine().last_request().mask_source, nullptr) << more;
  }
}

TEST_F(MessagesTest, AFormatHoldsTheText) {
  const json format = parse_json(R"({"type": "json_schema", "schema": {"type": "object",
      "properties": {"a": {"type": "integer"}}, "required": ["a"]}})");
  for (const json& more :
       {json{{"output_config", {{"format", format}}}}, json{{"output_format", format}},
        json{{"output_config", {{"format", format}}}, {"output_format", format}}}) {
    answer(ask("say a", more));
    EXPECT_TRUE(client_.may_begin(R"({"a": 1})")) << more;
    EXPECT_FALSE(client_.may_begin(R"({"b")")) << more;
  }
  json tools = ask("say a", {{"output_format", format}});
  tools["tools"] = parse_json(R"([{"name": "f", "input_schema": {"type": "object"}}])");
  answer(tools);
  EXPECT_TRUE(client_.may_begin("<tool_call>"));
  EXPECT_TRUE(client_.may_begin(R"({"a": 1})"));
}

TEST_F(MessagesTest, AFormatThatCannotBeHeldIsNamedAsItStands) {
  const json format = {{"type", "json_schema"}, {"schema", {{"type", "object"}}}};
  json other = format;
  other["schema"]["type"] = "array";
  const std::tuple<json, const char*, const char*> cases[] = {
      {{{"output_format", {{"type", "json_schema"}}}},
       "output_format",
       "'output_format.schema': expected a JSON Schema"},
      {{{"output_config", {{"format", {{"type", "xml"}}}}}},
       "output_config.format",
       "'output_config.format.type': expected one of text, json_object and json_schema, got 'xml'"},
      {{{"output_config", {{"format", format}}}, {"output_format", other}},
       "output_format",
       "'output_format' and 'output_config.format' mean the same, but their values differ"},
      {{{"output_format", format}, {"regex", "a"}},
       "output_format",
       "'output_format' and 'regex' must not both be there"},
      {{{"output_config", {{"effort", "much"}}}},
       "output_config.effort",
       "'output_config.effort': expected one of none, minimal, low, medium, high, xhigh and max"}};
  for (const auto& [more, param, message] : cases) {
    const json error = client_.refusal(kMessagesPath, json_text(ask("a", more)));
    EXPECT_EQ(error.at("param"), param);
    EXPECT_EQ(error.at("message"), message);
  }
}

TEST_F(MessagesTest, EffortReachesTheTemplate) {
  std::vector<std::string> unknown;
  const std::string body = ask("a", {{"output_config", {{"effort", "low"}}}}).dump();
  const auto request = read_messages_request(body, /*generates=*/true, unknown);
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(parse_json(request->chat.prompt.template_kwargs_json),
            json({{"reasoning_effort", "low"}}));
}

// A later system message stays where it is: the template decides how to show it.
TEST_F(MessagesTest, SystemMessagesStandAmongTheTurns) {
  json body = ask("", {{"system", "Be kind."}});
  body["messages"] = parse_json(R"([
      {"role": "user", "content": "a"},
      {"role": "system", "content": [{"type": "text", "text": "b"}, {"type": "text", "text": "c"}]},
      {"role": "user", "content": "say d"}])");
  answer(body);
  EXPECT_EQ(prompt(),
            "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\na<|im_end|>\n"
            "<|im_start|>system\nb\nc<|im_end|>\n<|im_start|>user\nsay d<|im_end|>\n"
            "<|im_start|>assistant\n");
}

TEST_F(MessagesTest, ASystemMessageForOneTurnEndsWithTheNext) {
  json body = ask("");
  body["messages"] = parse_json(R"([
      {"role": "user", "content": "a"},
      {"role": "system", "content": "b", "clear_at": "next_user_message"},
      {"role": "assistant", "content": "c"},
      {"role": "user", "content": "say d"},
      {"role": "system", "content": "say e", "clear_at": "next_user_message"}])");
  answer(body);
  EXPECT_EQ(prompt(),
            "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nc<|im_end|>\n"
            "<|im_start|>user\nsay d<|im_end|>\n<|im_start|>system\nsay e<|im_end|>\n"
            "<|im_start|>assistant\n");
}

TEST_F(MessagesTest, ABlockThatOnlyBillsIsNoPartOfThePrompt) {
  const auto system = [](const std::string& first) {
    json blocks = json::array({{{"type", "text"}, {"text", first}}});
    blocks.push_back({{"type", "text"}, {"text", "Be kind."}});
    return blocks;
  };
  for (const char* digits : {"00000", "a1b2c"}) {
    const std::string bill =
        std::string("x-anthropic-billing-header: cc_version=2.1; cch=") + digits;
    answer(ask("say a", {{"system", system(bill)}}));
    EXPECT_THAT(prompt(), StartsWith("<|im_start|>system\nBe kind.<|im_end|>"));
  }
  answer(ask("say a", {{"system", system("x-anthropic-billing-header: a\nBe brief.")}}));
  EXPECT_THAT(prompt(), HasSubstr("Be brief.\nBe kind."));
  json alone = system("x-anthropic-billing-header: a");
  alone.erase(1);
  answer(ask("say a", {{"system", alone}}));
  EXPECT_THAT(prompt(), StartsWith("<|im_start|>user\n"));
}

// The second turn of a conversation as Anthropic's command-line client makes it, from its public
// documentation.
TEST_F(MessagesTest, AConversationOfAnthropicsCommandLineClientGoesOn) {
  const json body = parse_json(R"({"max_tokens": 200, "stream": true, "temperature": 1,
      "metadata": {"user_id": "user_1_account__session_2"},
      "betas": ["claude-code-20250219", "interleaved-thinking-2025-05-14"],
      "thinking": {"type": "adaptive"}, "output_config": {"effort": "medium"},
      "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
      "cache_control": {"type": "ephemeral"}, "speed": "standard", "service_tier": "auto",
      "system": [
        {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.37.3a3; cch=00000;"},
        {"type": "text", "text": "You work in a terminal.",
         "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
      "tools": [{"name": "Bash", "description": "Runs a command.", "input_schema": {
        "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
        "properties": {"command": {"type": "string"}}, "required": ["command"],
        "additionalProperties": false}, "cache_control": {"type": "ephemeral"},
        "eager_input_streaming": true}],
      "messages": [
        {"role": "user", "content": [
          {"type": "text", "text": "<system-reminder>Be brief.</system-reminder>"},
          {"type": "text", "text": "List files.", "cache_control": {"type": "ephemeral"}}]},
        {"role": "assistant", "content": [
          {"type": "thinking", "thinking": "I list them.", "signature": ""},
          {"type": "text", "text": "Well:"},
          {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}},
          {"type": "tool_use", "id": "toolu_2", "name": "Bash", "input": {"command": "ls x"}}]},
        {"role": "user", "content": [
          {"tool_use_id": "toolu_1", "type": "tool_result", "content": "a.txt", "is_error": false},
          {"tool_use_id": "toolu_2", "type": "tool_result", "is_error": true,
           "content": [{"type": "text", "text": "no such file"}],
           "cache_control": {"type": "ephemeral"}}]},
        {"role": "system", "content": "say done"}]})");
  const std::vector<json> all = client_.named_events(kMessagesPath, json_text(body));
  EXPECT_EQ(all.back().at("type"), "message_stop");
  const std::string shown = prompt();
  EXPECT_THAT(shown, Not(HasSubstr("billing")));
  std::size_t at = 0;
  for (const char* text : {"You work in a terminal.", "<system-reminder>", "List files.",
                           "Well:", R"({"command":"ls"})", R"({"command":"ls x"})", "a.txt",
                           "no such file", "say done"}) {
    at = shown.find(text, at);
    ASSERT_NE(at, std::string::npos) << text << " in " << shown;
  }
}

TEST_F(MessagesTest, WhatIsNotReadIsNamed) {
  const auto message = [&](const json& body) {
    return client_.refusal(kMessagesPath, json_text(body)).at("message").get<std::string>();
  };
  json body = ask("");
  const json image = {{"type", "image"}, {"source", {{"type", "url"}, {"url", "http://a"}}}};
  body["messages"][0]["content"] = json::array({image});
  EXPECT_EQ(message(body), "'messages[0].content': images are not read, only texts");
  body["messages"][0]["content"] = json::array(
      {{{"type", "tool_result"}, {"tool_use_id", "1"}, {"content", json::array({image})}}});
  EXPECT_EQ(message(body),
            "'messages[0].content': in a tool_result images are not read, only texts");
  body["messages"][0]["content"] = json::array({{{"type", "server_tool_use"}}});
  EXPECT_EQ(message(body),
            "'messages[0].content': blocks of the type 'server_tool_use' are not supported");
  EXPECT_EQ(message(ask("a", {{"tools", {{{"type", "web_search_20250305"}}}}})),
            "'tools[].type': expected custom, got \"web_search_20250305\"");
}

TEST_F(MessagesTest, ErrorsNameTheField) {
  const std::pair<json, const char*> cases[] = {
      {parse_json(R"({"messages": [{"role": "user", "content": "a"}]})"), "max_tokens"},
      {parse_json(R"({"max_tokens": 1})"), "messages"},
      {parse_json(R"({"max_tokens": 1, "messages": [{"role": "king", "content": "a"}]})"),
       "messages"},
      {parse_json(R"({"max_tokens": 1, "messages": [{"role": "system", "content": [
           {"type": "tool_result", "tool_use_id": "1"}]}]})"),
       "messages"},
      {parse_json(
           R"({"max_tokens": 1, "messages": [{"role": "user", "content": [{"type": "image"}]}]})"),
       "messages"},
      {ask("a", {{"system", 1}}), "system"},
      {ask("a", {{"stop_sequences", "a"}}), "stop_sequences"},
      {ask("a", {{"stop_sequences", json(5, std::string(1000, 'x'))}}), "stop_sequences"},
      {ask("a", {{"tools", {{{"type", "web_search_20250305"}}}}}), "tools"},
      {ask("a", {{"tool_choice", {{"type", "any"}}}}), "tool_choice"},
      {ask("a", {{"thinking", {{"type", "some"}}}}), "thinking"},
      {ask("a", {{"mcp_servers", {1}}}), "mcp_servers"},
      {ask("a", {{"container", "c"}}), "container"},
      {ask("a", {{"thread", {{"type", "create"}}}}), "thread"},
      {ask("a", {{"compaction", {{"type", "auto"}}}}), "compaction"},
      {ask("a", {{"fallbacks", {{{"model", "b"}}}}}), "fallbacks"},
      {ask("a", {{"stop", {"x"}}}), "stop"},
      {ask("a", {{"n", 2}}), "n"},
      {ask("a", {{"guided_regex", 1}}), "guided_regex"},
  };
  for (const auto& [body, param] : cases)
    EXPECT_EQ(client_.refusal(kMessagesPath, json_text(body)).at("param"), param) << body;
}

}  // namespace
}  // namespace pagoda
