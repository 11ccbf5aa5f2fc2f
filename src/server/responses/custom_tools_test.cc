// Custom tools in /v1/responses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/json.h"
#include "tests/support/api_client.h"

namespace pagoda {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr const char* kPath = "/v1/responses";

class CustomToolsTest : public ::testing::Test {
 protected:
  static json ask(const json& input, json more = json::object()) {
    more["input"] = input;
    if (!more.contains("tools")) more["tools"] = json::array({kTool, kFunction});
    return more;
  }
  json answer(const json& body) { return client_.answer(kPath, json_text(body)); }
  // Returns whether the grammar of a request's answers accepts such a beginning.
  bool may_begin(const json& body, const std::string& text) {
    answer(body);
    return client_.may_begin(text);
  }

  static inline const json kTool = {
      {"type", "custom"}, {"name", "patch"}, {"description", "Changes files."}};
  static inline const json kFunction = {{"type", "function"}, {"name", "now"}};
  static inline const std::string kCall =
      R"(<tool_call>{"name": "patch", "arguments": {"input": "a\n\"b\""}}</tool_call>)";

  ApiClient client_;
};

TEST_F(CustomToolsTest, ACallIsAnItemWithItsInput) {
  const json body = ask("say " + kCall);
  const json whole = answer(body);
  ASSERT_EQ(whole.at("output").size(), 1u);
  const json& item = whole.at("output").at(0);
  EXPECT_EQ(item.at("type"), "custom_tool_call");
  EXPECT_TRUE(item.at("id").get<std::string>().starts_with("ctc_"));
  EXPECT_TRUE(item.at("call_id").get<std::string>().starts_with("call_"));
  EXPECT_EQ(item.at("name"), "patch");
  EXPECT_EQ(item.at("input"), "a\n\"b\"");
  EXPECT_EQ(item.at("status"), "completed");
  EXPECT_EQ(item.size(), 6u);
  EXPECT_EQ(whole.at("tools"), body.at("tools"));
}

TEST_F(CustomToolsTest, AStreamTellsTheInputAsItComes) {
  json body = ask("say " + kCall);
  body["stream"] = true;
  std::vector<std::string> types;
  std::string input;
  json done, item;
  for (const json& event : client_.named_events(kPath, json_text(body))) {
    const std::string type = event.at("type");
    if (types.empty() || types.back() != type) types.push_back(type);
    if (event.contains("delta")) input += event.at("delta").get<std::string>();
    if (type == "response.custom_tool_call_input.done") done = event;
    if (type == "response.output_item.added") {
      EXPECT_EQ(event.at("item").at("type"), "custom_tool_call");
      EXPECT_EQ(event.at("item").at("input"), "");
    }
    if (type == "response.output_item.done") item = event.at("item");
  }
  EXPECT_EQ(types,
            (std::vector<std::string>{
                "response.created", "response.in_progress", "response.output_item.added",
                "response.custom_tool_call_input.delta", "response.custom_tool_call_input.done",
                "response.output_item.done", "response.completed"}));
  EXPECT_EQ(input, "a\n\"b\"");
  EXPECT_EQ(done.at("input"), input);
  EXPECT_EQ(done.at("item_id"), item.at("id"));
  EXPECT_EQ(item.at("input"), input);
}

TEST_F(CustomToolsTest, ACallThatBreaksOffIsIncomplete) {
  const json whole =
      answer(ask(R"(say <tool_call>{"name": "patch", "arguments": {"input": "a\nb)"));
  const json& item = whole.at("output").at(0);
  EXPECT_EQ(item.at("input"), "a\nb");
  EXPECT_EQ(item.at("status"), "incomplete");
}

TEST_F(CustomToolsTest, AConversationGoesOnWithIt) {
  const json first = answer(ask("say " + kCall));
  const json& call = first.at("output").at(0);
  const json output = {
      {"type", "custom_tool_call_output"}, {"call_id", call.at("call_id")}, {"output", "done"}};
  const json order = {{"role", "user"}, {"content", "say b"}};
  const std::string shown =
      R"(<tool_call>
{"name": "patch", "arguments": {"input":"a\n\"b\""}}
</tool_call>)";
  answer(ask({output, order}, {{"previous_response_id", first.at("id")}}));
  const std::string continued = client_.last_prompt();
  EXPECT_THAT(continued, HasSubstr(shown));
  EXPECT_THAT(continued, HasSubstr("<tool_response>\ndone\n</tool_response>"));
  const json sent = {{"role", "user"}, {"content", "say " + kCall}};
  answer(ask({sent, call, output, order}));
  EXPECT_EQ(client_.last_prompt(), continued);
  const json reference = {{"type", "item_reference"}, {"id", call.at("id")}};
  answer(ask({sent, reference, output, order}));
  EXPECT_EQ(client_.last_prompt(), continued);
}

TEST_F(CustomToolsTest, TheInputIsListedWithIts) {
  const json call = {
      {"type", "custom_tool_call"}, {"call_id", "1"}, {"name", "patch"}, {"input", "a"}};
  const json output = {{"type", "custom_tool_call_output"}, {"call_id", "1"}, {"output", "done"}};
  const json shell = {
      {"type", "local_shell_call"}, {"call_id", "2"}, {"action", {{"type", "exec"}}}};
  const json order = {{"role", "user"}, {"content", "say b"}};
  const json response = answer(ask({call, output, shell, order}));
  const std::string path = std::string(kPath) + "/" + response.at("id").get<std::string>();
  const HttpResponse found =
      client_.send({.method = "GET", .path = path + "/input_items", .query = "order=asc"});
  json items = parse_json(found.body).at("data");
  ASSERT_EQ(items.size(), 4u);
  const json ids = {items[0].at("id"), items[2].at("id")};
  for (json& item : items) {
    item.erase("id");
    EXPECT_EQ(item.at("status"), "completed");
    item.erase("status");
  }
  EXPECT_EQ(items[0], call);
  EXPECT_EQ(items[1], output);
  EXPECT_EQ(items[2].at("arguments"), R"({"type":"exec"})");
  // Both are taken back by their ids.
  json again = json::array({order});
  for (const json& id : ids) again.push_back({{"type", "item_reference"}, {"id", id}});
  again.push_back(order);
  answer(ask(again));
  EXPECT_THAT(client_.last_prompt(), HasSubstr(R"("arguments": {"input":"a"})"));
}

TEST_F(CustomToolsTest, ChoicesNameThem) {
  const std::string begin = "<tool_call>\n{\"name\": \"patch\", \"arguments\": {\"input\": \"";
  const std::string other = "<tool_call>\n{\"name\": \"now\"";
  const json named = {{"type", "custom"}, {"name", "patch"}};
  const json allowed = {
      {"type", "allowed_tools"}, {"mode", "required"}, {"tools", json::array({named})}};
  for (const json& choice : {named, allowed}) {
    const json body = ask("say a", {{"tool_choice", choice}});
    EXPECT_TRUE(may_begin(body, begin)) << choice;
    EXPECT_FALSE(may_begin(body, other)) << choice;
  }
  const json unknown = {{"type", "custom"}, {"name", "other"}};
  EXPECT_EQ(client_.refusal(kPath, json_text(ask("a", {{"tool_choice", unknown}}))).at("message"),
            "'tool_choice': 'tools' has no function 'other'");
}

TEST_F(CustomToolsTest, AFormatIsHeldOrTold) {
  const std::string begin = "<tool_call>\n{\"name\": \"patch\", \"arguments\": {\"input\": \"";
  const auto with_format = [](const json& format) {
    json tool = kTool;
    tool["format"] = format;
    return ask("say a", {{"tools", json::array({{{"type", "web_search"}}, tool})}});
  };
  EXPECT_TRUE(may_begin(with_format({{"type", "text"}}), begin + "any"));
  const json regex =
      with_format({{"type", "grammar"}, {"syntax", "regex"}, {"definition", "^\\d+$"}});
  EXPECT_TRUE(may_begin(regex, begin + "12\"}"));
  EXPECT_FALSE(may_begin(regex, begin + "a"));
  const json lark =
      with_format({{"type", "grammar"}, {"syntax", "lark"}, {"definition", "start: /a/"}});
  EXPECT_TRUE(may_begin(lark, begin + "b"));
  EXPECT_THAT(client_.last_prompt(), HasSubstr("this Lark grammar:\\nstart: /a/"));
}

TEST_F(CustomToolsTest, ErrorsNameTheField) {
  json tool = kTool;
  tool["format"] = {{"type", "grammar"}, {"syntax", "gbnf"}, {"definition", "a"}};
  EXPECT_EQ(
      client_.refusal(kPath, json_text(ask("a", {{"tools", json::array({tool})}}))).at("message"),
      R"('tools[0].format.syntax': expected lark or regex, got "gbnf")");
  tool.erase("name");
  tool.erase("format");
  EXPECT_EQ(
      client_.refusal(kPath, json_text(ask("a", {{"tools", json::array({tool})}}))).at("message"),
      "'tools[0].name': expected a string");
}

}  // namespace
}  // namespace pagoda
