// The input of stored responses, items that requests refer to, and what is beside /v1/responses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/json.h"
#include "server/responses/stored_items.h"
#include "tests/support/api_client.h"

namespace pagoda {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr const char* kStoredPath = "/v1/responses";

class StoredResponsesTest : public ::testing::Test {
 protected:
  json answer(const json& body) { return client_.answer(kStoredPath, json_text(body)); }
  json input_items(const json& response, const std::string& query = "order=asc") {
    const HttpResponse found =
        client_.send({.method = "GET", .path = path_of(response) + "/input_items", .query = query});
    EXPECT_EQ(found.status, 200) << found.body;
    return parse_json(found.body);
  }
  static std::string path_of(const json& response) {
    return std::string(kStoredPath) + "/" + response.at("id").get<std::string>();
  }
  static json reference(const json& item) {
    return {{"type", "item_reference"}, {"id", item.at("id")}};
  }

  ApiClient client_;
};

TEST_F(StoredResponsesTest, TheInputIsListedAsItems) {
  const json first = answer({{"input", "say \"one\""}});
  const json second = answer({{"previous_response_id", first.at("id")}, {"input", parse_json(R"([
      {"role": "developer", "content": "Be kind."},
      {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "So."}]},
      {"role": "assistant", "content": "Look:"},
      {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
      {"type": "function_call_output", "call_id": "1", "output": "sunny"},
      {"role": "user", "content": [{"type": "input_text", "text": "say two"}]}])")}});
  const json list = input_items(second);
  EXPECT_EQ(list.at("object"), "list");
  EXPECT_EQ(list.at("has_more"), false);
  json items = list.at("data");
  ASSERT_EQ(items.size(), 6u);
  EXPECT_EQ(list.at("first_id"), items.front().at("id"));
  EXPECT_EQ(list.at("last_id"), items.back().at("id"));
  for (json& item : items) {
    EXPECT_EQ(item.at("status"), "completed");
    item.erase("id");
    item.erase("status");
  }
  EXPECT_EQ(items, parse_json(R"([
      {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be kind."}]},
      {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "So."}]},
      {"type": "message", "role": "assistant",
       "content": [{"type": "output_text", "text": "Look:", "annotations": []}]},
      {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
      {"type": "function_call_output", "call_id": "1", "output": "sunny"},
      {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "say two"}]}])"));
  EXPECT_EQ(input_items(first).at("data").at(0).at("content").at(0).at("text"), "say \"one\"");
}

TEST_F(StoredResponsesTest, TheInputComesInPages) {
  const json body = answer({{"input", parse_json(R"([{"role": "user", "content": "a"},
      {"role": "user", "content": "b"}, {"role": "user", "content": "say c"}])")}});
  const auto texts = [](const json& list) {
    std::string all;
    for (const json& item : list.at("data"))
      all += item.at("content").at(0).at("text").get<std::string>() + "|";
    return all;
  };
  EXPECT_EQ(texts(input_items(body, "")), "say c|b|a|");
  const json page = input_items(body, "limit=2&order=asc");
  EXPECT_EQ(texts(page), "a|b|");
  EXPECT_EQ(page.at("has_more"), true);
  const std::string after = page.at("last_id");
  EXPECT_EQ(texts(input_items(body, "order=asc&after=" + after)), "say c|");
  const auto status = [&](const std::string& query) {
    return client_.send({.method = "GET", .path = path_of(body) + "/input_items", .query = query})
        .status;
  };
  EXPECT_EQ(status("limit=0"), 400);
  EXPECT_EQ(status("order=up"), 400);
  EXPECT_EQ(status("after=none"), 404);
}

TEST_F(StoredResponsesTest, WhatIsNotStoredHasNoInput) {
  EXPECT_EQ(client_.get("/v1/responses/resp_none/input_items").status, 404);
  EXPECT_EQ(client_.post("/v1/responses/resp_none/input_items", "{}").status, 405);
}

TEST_F(StoredResponsesTest, ReferencesStandForTheirItems) {
  client_.model().answer_format.thought = ThoughtMarks{"<think>", "</think>"};
  const json first = answer(
      {{"input",
        R"(say <think>So.</think> Look: <tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>)"},
       {"tools", parse_json(R"([{"type": "function", "name": "f"}])")}});
  json input = json::array({reference(input_items(first).at("data").at(0))});
  for (const json& item : first.at("output")) input.push_back(reference(item));
  input[1].erase("type");
  input.push_back({{"type", "function_call_output"},
                   {"call_id", first.at("output").at(2).at("call_id")},
                   {"output", "sunny"}});
  input.push_back({{"role", "user"}, {"content", "say thanks"}});
  answer({{"input", input}});
  const std::string prompt = client_.last_prompt();
  EXPECT_THAT(prompt, HasSubstr("<|im_start|>user\nsay <think>So.</think> Look:"));
  EXPECT_THAT(prompt, HasSubstr("<|im_start|>assistant\nLook:"));
  EXPECT_THAT(prompt, HasSubstr(R"("function": {"name": "f", "arguments": {"a": 1}})"));
  EXPECT_THAT(prompt, HasSubstr("<|im_start|>tool\nsunny<|im_end|>"));
}

TEST_F(StoredResponsesTest, AReferenceToNothingIsNamed) {
  const json first = answer({{"input", "say a"}, {"store", false}});
  const std::string id = first.at("output").at(0).at("id");
  for (const std::string& wrong : {id, std::string("1"), std::string("msg_")}) {
    const json body = {{"input", {{{"type", "item_reference"}, {"id", wrong}}}}};
    const json error = client_.refusal(kStoredPath, json_text(body), 404);
    EXPECT_EQ(error.at("param"), "input");
    EXPECT_EQ(error.at("message"), "'input[0].id': no item '" + wrong + "' is stored");
  }
}

TEST(StoredItems, ReferencesAreBounded) {
  ResponseStore store;
  RequestJson input = RequestJson::array();
  for (int i = 0; i < 3; ++i) {
    const std::string digits = std::string(31, 'a') + std::to_string(i);
    store.put(
        "client", "resp_" + digits,
        {HeldText::for_good(std::string(kMaxReferencedBytes / 2, 'a')), HeldText::for_good("[]")});
    input.push_back({{"type", "item_reference"}, {"id", "msg_" + digits + "0000"}});
  }
  EXPECT_FALSE(find_referenced(store, "client", input).ok());
  EXPECT_EQ(find_referenced(store, "another", input).error().status, 404);
  input.erase(1);
  input.erase(1);
  EXPECT_TRUE(find_referenced(store, "client", input).ok());
}

TEST_F(StoredResponsesTest, TokensAreCounted) {
  const json body = {{"input", "say a"}, {"instructions", "Be kind."}};
  const json count = client_.answer("/v1/responses/input_tokens", json_text(body));
  EXPECT_EQ(count.at("object"), "response.input_tokens");
  EXPECT_EQ(count.at("input_tokens"), answer(body).at("usage").at("input_tokens"));
  EXPECT_EQ(client_.refusal("/v1/responses/input_tokens", "{}").at("param"), "input");
}

TEST_F(StoredResponsesTest, AnIdHoldsNoSlash) {
  const json body = answer({{"input", "say a"}});
  EXPECT_EQ(client_.get(path_of(body)).status, 200);
  EXPECT_EQ(parse_json(client_.get(path_of(body) + "/other").body).at("error").at("message"),
            "there is nothing at GET " + path_of(body) + "/other");
}

TEST_F(StoredResponsesTest, WhatIsNotServedSaysWhatItIs) {
  const json body = answer({{"input", "say a"}});
  const std::pair<std::string, const char*> cases[] = {{path_of(body) + "/cancel", "background"},
                                                       {"/v1/responses/compact", "compacts"}};
  for (const auto& [path, word] : cases) {
    const json error = client_.refusal(path, "{}", 404);
    EXPECT_THAT(error.at("message").get<std::string>(), HasSubstr(word));
  }
}

}  // namespace
}  // namespace pagoda
