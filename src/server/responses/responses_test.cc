// /v1/responses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "server/responses/response_request.h"
#include "tests/support/api_client.h"

namespace pagoda {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kResponsesPath = "/v1/responses";

class ResponsesTest : public ::testing::Test {
 protected:
  json answer(const json& body) { return client_.answer(kResponsesPath, json_text(body)); }
  std::string prompt() { return client_.last_prompt(); }
  std::vector<json> events(json body) {
    body["stream"] = true;
    return client_.named_events(kResponsesPath, json_text(body));
  }

  ApiClient client_;
};

TEST_F(ResponsesTest, AnswersInOpenAisShape) {
  const json body = answer({{"input", "say hello"}, {"metadata", {{"a", "b"}}}, {"top_p", 0.9}});
  EXPECT_EQ(body.at("top_p"), 0.9);
  EXPECT_TRUE(body.at("id").get<std::string>().starts_with("resp_"));
  EXPECT_EQ(body.at("object"), "response");
  EXPECT_EQ(body.at("status"), "completed");
  EXPECT_EQ(body.at("metadata"), json({{"a", "b"}}));
  ASSERT_EQ(body.at("output").size(), 1u);
  const json& item = body.at("output").at(0);
  EXPECT_EQ(item.at("type"), "message");
  EXPECT_EQ(item.at("status"), "completed");
  EXPECT_EQ(item.at("content"), parse_json(R"([{"type": "output_text", "text": "hello",
                                                 "annotations": [], "logprobs": []}])"));
  EXPECT_GT(body.at("usage").at("input_tokens"), 0);
  EXPECT_EQ(body.at("usage").at("output_tokens_details").at("reasoning_tokens"), 0);
  EXPECT_EQ(body.at("usage").at("input_tokens_details"),
            json({{"cached_tokens", 0}, {"cache_write_tokens", 0}}));
}

TEST_F(ResponsesTest, TokensWhoseTextIsHeldBackHaveLogprobs) {
  json body = {{"input", "say a\u00e9\u732b"},
               {"include", {"message.output_text.logprobs"}},
               {"top_logprobs", 1}};
  const json whole = answer(body).at("output").at(0).at("content").at(0);
  EXPECT_EQ(whole.at("text"), "a\u00e9\u732b");
  std::vector<int> bytes;
  for (const json& token : whole.at("logprobs")) bytes.push_back(token.at("bytes").at(0));
  EXPECT_EQ(bytes, (std::vector<int>{'a', 0xc3, 0xa9, 0xe7, 0x8c, 0xab}));
  json streamed = json::array();
  for (const json& event : events(body)) {
    if (event.at("type") == "response.output_text.delta")
      for (const json& token : event.at("logprobs")) streamed.push_back(token);
  }
  EXPECT_EQ(streamed, whole.at("logprobs"));
}

TEST_F(ResponsesTest, AnAnswerThatIsCutOffIsIncomplete) {
  const json body = answer({{"input", "count 100"}, {"max_output_tokens", 3}});
  EXPECT_EQ(body.at("status"), "incomplete");
  EXPECT_EQ(body.at("incomplete_details"), json({{"reason", "max_output_tokens"}}));
}

TEST_F(ResponsesTest, ItemsBecomeMessages) {
  answer({{"instructions", "Be kind."}, {"input", parse_json(R"([
      {"role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]},
      {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "t"}]},
      {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "c"}]},
      {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
      {"type": "function_call", "call_id": "2", "name": "g", "arguments": "{}"},
      {"type": "function_call_output", "call_id": "1", "output": "d"},
      {"role": "user", "content": "say e"}])")}});
  EXPECT_EQ(prompt(),
            "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nab<|im_end|>\n"
            "<|im_start|>assistant\nc"
            R"([{"id": "1", "type": "function", "function": {"name": "f", "arguments": {}}}, )"
            R"({"id": "2", "type": "function", "function": {"name": "g", "arguments": {}}}])"
            "<|im_end|>\n<|im_start|>tool\nd<|im_end|>\n<|im_start|>user\nsay e<|im_end|>\n"
            "<|im_start|>assistant\n");
}

TEST_F(ResponsesTest, AConversationGoesOn) {
  const json first = answer({{"instructions", "Be kind."}, {"input", "say hello"}});
  answer({{"previous_response_id", first.at("id")}, {"input", "say more"}});
  EXPECT_EQ(prompt(),
            "<|im_start|>user\nsay hello<|im_end|>\n<|im_start|>assistant\nhello<|im_end|>\n"
            "<|im_start|>user\nsay more<|im_end|>\n<|im_start|>assistant\n");
}

TEST_F(ResponsesTest, StoredOnesAreFetchedAndDeleted) {
  const json body = answer({{"input", "say hello"}});
  const std::string path = std::string(kResponsesPath) + "/" + body.at("id").get<std::string>();
  EXPECT_EQ(parse_json(client_.get(path).body), body);
  const HttpResponse deleted = client_.send({.method = "DELETE", .path = path});
  EXPECT_EQ(parse_json(deleted.body).at("deleted"), true);
  for (const char* method : {"GET", "DELETE"})
    EXPECT_EQ(client_.send({.method = method, .path = path}).status, 404);
  EXPECT_EQ(client_
                .refusal(kResponsesPath,
                         json{{"previous_response_id", body.at("id")}, {"input", "a"}}.dump(), 404)
                .at("param"),
            "previous_response_id");
  const json unkept = answer({{"input", "say hello"}, {"store", false}});
  EXPECT_EQ(
      client_.get(std::string(kResponsesPath) + "/" + unkept.at("id").get<std::string>()).status,
      404);
}

TEST(Responses, AreForAllKeysOfTheirClientsName) {
  ApiClient client(
      {},
      {.api_keys = {{sha256("old"), "alice"}, {sha256("new"), "alice"}, {sha256("other"), "bob"}}});
  const auto send = [&](HttpRequest request, const std::string& key) {
    request.headers = {{"authorization", "Bearer " + key}};
    return client.send(std::move(request));
  };
  const std::string body = json{{"input", "say hello"}}.dump();
  const HttpResponse made = send({.method = "POST", .path = kResponsesPath, .body = body}, "old");
  const std::string path =
      std::string(kResponsesPath) + "/" + parse_json(made.body).at("id").get<std::string>();
  EXPECT_EQ(send({.method = "GET", .path = path}, "other").status, 404);
  EXPECT_EQ(parse_json(send({.method = "GET", .path = path}, "new").body), parse_json(made.body));
}

TEST_F(ResponsesTest, CallsAndThoughtsAreItems) {
  client_.model().answer_format.thought = ThoughtMarks{"<think>", "</think>"};
  const json body = {
      {"input",
       R"(say <think>So.</think> Look: <tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>)"},
      {"tools",
       parse_json(R"([{"type": "function", "name": "f", "parameters": {"type": "object"}}])")}};
  const json whole = answer(body);
  const json& output = whole.at("output");
  ASSERT_EQ(output.size(), 3u);
  EXPECT_EQ(output[0].at("type"), "reasoning");
  EXPECT_EQ(output[0].at("content").at(0).at("text"), "So.");
  EXPECT_EQ(output[1].at("content").at(0).at("text"), "Look:");
  EXPECT_EQ(output[2].at("type"), "function_call");
  EXPECT_EQ(output[2].at("name"), "f");
  EXPECT_EQ(output[2].at("arguments"), R"({"a": 1})");
  EXPECT_TRUE(output[2].at("call_id").get<std::string>().starts_with("call_"));
  EXPECT_GT(whole.at("usage").at("output_tokens_details").at("reasoning_tokens"), 0);

  // The prompt of a continued conversation holds the call.
  answer({{"previous_response_id", whole.at("id")},
          {"input",
           parse_json(R"([{"type": "function_call_output", "call_id": "x", "output": "1"}])")}});
  EXPECT_THAT(prompt(), HasSubstr(R"("function": {"name": "f", "arguments": {"a": 1}})"));
}

TEST_F(ResponsesTest, ACallThatBrokeOffIsAnIncompleteItem) {
  const std::string begin = R"(<tool_call>{"name": "f", "arguments": )";
  const auto statuses_of = [](const json& output) {
    std::vector<std::string> statuses;
    for (const json& item : output) statuses.push_back(item.at("status"));
    return statuses;
  };
  const std::string text =
      begin + R"({"a": NaN}}</tool_call> And )" + begin + R"({"a": 1}} )" + begin + R"({"a": "b)";
  json body = {{"input", "say " + text},
               {"tools", parse_json(R"([{"type": "function", "name": "f"}])")}};
  const std::vector<std::string> expected = {"incomplete", "completed", "completed", "incomplete"};
  const json whole = answer(body);
  EXPECT_EQ(whole.at("status"), "completed");
  EXPECT_EQ(statuses_of(whole.at("output")), expected);
  EXPECT_EQ(whole.at("output").at(0).at("arguments"), R"({"a": NaN})");
  EXPECT_EQ(whole.at("output").at(3).at("arguments"), R"({"a": "b)");
  EXPECT_EQ(statuses_of(events(body).back().at("response").at("output")), expected);
  body["max_output_tokens"] = text.size() - 1;
  EXPECT_EQ(answer(body).at("status"), "incomplete");
}

// Returns the types of the parts in all events of a type, each with a space behind it.
std::string part_types(const std::vector<json>& events, std::string_view type) {
  std::string types;
  for (const json& event : events) {
    if (event.at("type") == type) types += event.at("part").at("type").get<std::string>() + " ";
  }
  return types;
}

// The deltas of an item add up to its text in the whole response.
TEST_F(ResponsesTest, AStreamTellsEachItem) {
  client_.model().answer_format.thought = ThoughtMarks{"<think>", "</think>"};
  const std::vector<json> all = events(
      {{"input",
        R"(say <think>So.</think> Look: <tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>)"},
       {"tools", parse_json(R"([{"type": "function", "name": "f"}])")}});
  std::map<int, std::string> texts;
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].at("sequence_number"), i);
    if (all[i].contains("delta"))
      texts[all[i].at("output_index")] += all[i].at("delta").get<std::string>();
  }
  EXPECT_EQ(all[0].at("type"), "response.created");
  EXPECT_EQ(all[1].at("type"), "response.in_progress");
  EXPECT_EQ(all[2].at("type"), "response.output_item.added");
  EXPECT_EQ(all.back().at("type"), "response.completed");
  EXPECT_EQ(part_types(all, "response.content_part.added"), "reasoning_text output_text ");
  EXPECT_EQ(part_types(all, "response.content_part.done"), "reasoning_text output_text ");
  const json& output = all.back().at("response").at("output");
  ASSERT_EQ(output.size(), 3u);
  EXPECT_EQ(json(texts[0]), output[0].at("content").at(0).at("text"));
  EXPECT_EQ(json(texts[1]), output[1].at("content").at(0).at("text"));
  EXPECT_EQ(json(texts[2]), output[2].at("arguments"));
}

TEST_F(ResponsesTest, AFailureEndsTheStream) {
  const std::vector<json> all = events({{"input", "fail it broke"}});
  EXPECT_EQ(all.back().at("type"), "response.failed");
  EXPECT_THAT(all.back().at("response").at("error").at("message").get<std::string>(),
              HasSubstr("it broke"));
}

TEST_F(ResponsesTest, ErrorsNameTheField) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({})", "input"},
      {R"({"input": 1})", "input"},
      {R"({"input": [{"role": "king", "content": "a"}]})", "input"},
      {R"({"input": [{"type": "item_reference", "id": 1}]})", "input"},
      {R"({"input": [{"type": "compaction", "encrypted_content": "a"}]})", "input"},
      {R"({"input": [{"role": "user", "content": [{"type": "input_image"}]}]})", "input"},
      {R"({"input": "a", "background": true})", "background"},
      {R"({"input": "a", "tools": [{"type": "web_search"}]})", "tools"},
      {R"({"input": "a", "tool_choice": "required"})", "tool_choice"},
      {R"({"input": "a", "text": {"format": {"type": "json_schema"}}})", "text"},
      {R"({"input": "a", "reasoning": {"effort": "much"}})", "reasoning"},
  };
  for (const auto& [body, param] : cases)
    EXPECT_EQ(client_.refusal(kResponsesPath, body).at("param"), param) << body;
}

TEST_F(ResponsesTest, InputIsBounded) {
  json items(kMaxInputItems + 1, {{"role", "user"}, {"content", ""}});
  EXPECT_EQ(client_.refusal(kResponsesPath, json{{"input", items}}.dump()).at("message"),
            "'input': expected at most 4096 items, got 4097");
}

TEST_F(ResponsesTest, ASchemaHoldsTheText) {
  answer({{"input", "say a"},
          {"text", parse_json(R"({"format": {"type": "json_schema", "name": "x", "strict": true,
                                   "schema": {"type": "object", "properties": {}}}})")}});
  EXPECT_NE(client_.engine().last_request().mask_source, nullptr);
}

TEST_F(ResponsesTest, CallsThatMustBeMadeLeaveNoTextForAFormat) {
  const json body = parse_json(R"({"input": "say a", "tools": [{"type": "function", "name": "f"}],
      "text": {"format": {"type": "json_schema", "name": "x", "schema": {"type": "object"}}},
      "tool_choice": {"type": "function", "name": "f"}})");
  EXPECT_EQ(answer(body).at("text"), body.at("text"));
  EXPECT_NE(client_.engine().last_request().mask_source, nullptr);
}

TEST_F(ResponsesTest, AllowedToolsMayBeCalled) {
  json body = parse_json(R"({"input": "say a", "tools": [{"type": "function", "name": "f"}],
      "tool_choice": {"type": "allowed_tools", "mode": "required",
                      "tools": [{"type": "function", "name": "f"}]}})");
  EXPECT_EQ(answer(body).at("tool_choice"), body.at("tool_choice"));
  EXPECT_NE(client_.engine().last_request().mask_source, nullptr);
  body["tool_choice"]["tools"][0]["name"] = "g";
  EXPECT_EQ(client_.refusal(kResponsesPath, json_text(body)).at("param"), "tool_choice");
  body["tool_choice"] = {{"type", "allowed_tools"}, {"mode", "auto"}, {"tools", json::array()}};
  body.erase("tools");
  EXPECT_EQ(client_.refusal(kResponsesPath, json_text(body)).at("message"),
            "'tool_choice' needs 'tools'");
}

TEST_F(ResponsesTest, VerbosityChangesNothing) {
  const json body = answer({{"input", "say a"}, {"text", {{"verbosity", "low"}}}});
  EXPECT_EQ(body.at("output").at(0).at("content").at(0).at("text"), "a");
}

TEST_F(ResponsesTest, AStopStringEndsTheText) {
  const json body = answer({{"input", "say one two three"}, {"stop", " three"}});
  EXPECT_EQ(body.at("output").at(0).at("content").at(0).at("text"), "one two");
  EXPECT_EQ(body.at("status"), "completed");
}

TEST_F(ResponsesTest, GrammarsOfOtherServersHoldTheText) {
  for (const char* more : {R"("structured_outputs": {"regex": "yes|no"})", R"("guided_regex": "a")",
                           R"("regex": "a")", R"("grammar": "root ::= \"a\"")"}) {
    client_.answer(kResponsesPath, std::string(R"({"input": "say a", )") + more + "}");
    EXPECT_NE(client_.engine().last_request().mask_source, nullptr) << more;
  }
  EXPECT_EQ(client_
                .refusal(kResponsesPath, R"({"input": "say a", "regex": "a",
                                             "text": {"format": {"type": "json_object"}}})")
                .at("message"),
            "'text.format' and 'regex' must not both be there");
}

TEST_F(ResponsesTest, AFormatThatCannotBeHeldIsNamedAsItStands) {
  const json format = {{"type", "json_schema"}, {"name", "x"}, {"schema", {{"no-such", 1}}}};
  json body = {{"input", "say a"}, {"text", {{"format", format}}}};
  const json tools = {{{"type", "function"}, {"name", "now"}}};
  for (const json& each : {json(), tools}) {
    if (!each.is_null()) body["tools"] = each;
    const json refused = client_.refusal(kResponsesPath, json_text(body));
    EXPECT_EQ(refused.at("param"), "text");
    EXPECT_THAT(refused.at("message").get<std::string>(), StartsWith("'text.format': "));
    EXPECT_THAT(refused.at("message").get<std::string>(), HasSubstr("no-such"));
  }
}

TEST_F(ResponsesTest, NamesOfChatsAreRefusedWithWhatToTakeInstead) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"input": "a", "n": 2})", "'n' is not supported: a request for each answer"},
      {R"({"input": "a", "max_tokens": 5})", "'max_tokens' is not supported: max_output_tokens"},
      {R"({"input": "a", "response_format": {"type": "json_object"}})",
       "'response_format' is not supported: text.format"},
      {R"({"input": "a", "options": {"num_predict": 5}})",
       "'num_predict' is not supported: max_output_tokens"},
      {R"({"input": "a", "chat_template": "x"})",
       "'chat_template' is not supported: the checkpoint's own"},
  };
  for (const auto& [body, message] : cases)
    EXPECT_EQ(client_.refusal(kResponsesPath, body).at("message"), message) << body;
  answer({{"input", "say a"}, {"n", 1}, {"response_format", {{"type", "text"}}}});
}

TEST_F(ResponsesTest, MetadataHasOpenAisBounds) {
  json most = json::object();
  for (int i = 0; i < 16; ++i) most[fmt::format("{:064}", i)] = std::string(512, 'a');
  EXPECT_EQ(answer({{"input", "say a"}, {"metadata", most}}).at("metadata"), most);
  json more = most;
  more["one"] = "more";
  const std::string e_acute = "\u00e9";
  std::string accents;
  for (int i = 0; i < 512; ++i) accents += e_acute;
  answer({{"input", "say a"}, {"metadata", {{"a", accents}}}});
  for (const json& wrong :
       {more, json{{std::string(65, 'k'), "a"}}, json{{"a", accents + "b"}}, json{{"a", 1}}}) {
    const json refused =
        client_.refusal(kResponsesPath, json{{"input", "say a"}, {"metadata", wrong}}.dump());
    EXPECT_EQ(refused.at("param"), "metadata");
    EXPECT_THAT(refused.at("message").get<std::string>(), HasSubstr("expected"));
  }
}

// A response is stored only if it is no larger than a prompt with an answer, whatever part of it
// templates show.
TEST_F(ResponsesTest, WhatIsTooLargeToKeepIsNotAndSaysSo) {
  const std::string large(300'000, 'x');
  const json unseen = {{{"type", "function_call_output"}, {"call_id", large}, {"output", "a"}},
                       {{"role", "user"}, {"content", "say hello"}}};
  const json tools = {{{"type", "function"}, {"name", "f"}, {"description", large}}};
  for (const json& body :
       {json{{"input", unseen}},
        json{{"input", "say hello"}, {"tools", tools}, {"tool_choice", "none"}}}) {
    const json whole = answer(body);
    EXPECT_EQ(whole.at("store"), false);
    const std::string id = whole.at("id");
    EXPECT_EQ(client_.get(std::string(kResponsesPath) + "/" + id).status, 404);
  }
  EXPECT_EQ(answer({{"input", "say hello"}}).at("store"), true);
}

// Three turns, the second one streamed.
TEST_F(ResponsesTest, TurnsAreJoinedAsTheyWere) {
  const json first = answer({{"input", "say \"one\""}});
  const json second = events({{"previous_response_id", first.at("id")}, {"input", "say two"}})
                          .back()
                          .at("response");
  EXPECT_EQ(second.at("status"), "completed");
  answer({{"previous_response_id", second.at("id")},
          {"input", json::array({{{"role", "user"}, {"content", "say 3"}}})}});
  EXPECT_EQ(prompt(),
            "<|im_start|>user\nsay \"one\"<|im_end|>\n<|im_start|>assistant\n\"one\"<|im_end|>\n"
            "<|im_start|>user\nsay two<|im_end|>\n<|im_start|>assistant\ntwo<|im_end|>\n"
            "<|im_start|>user\nsay 3<|im_end|>\n<|im_start|>assistant\n");
}

}  // namespace
}  // namespace pagoda
