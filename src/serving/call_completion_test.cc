#include "serving/call_completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/json.h"

namespace pagoda {
namespace {

using ::testing::MatchesRegex;

OrderedJson completed(const MessageTraits& traits, std::string_view messages_json) {
  OrderedJson messages = parse_ordered_json(messages_json);
  complete_calls(traits, messages);
  return messages;
}

std::string id_of(const OrderedJson& messages, int message, int call) {
  return messages[message]["tool_calls"][call]["id"].get<std::string>();
}

TEST(CallCompletionTest, IdsThatTheTemplateTakesStay) {
  const std::string_view kept =
      R"([{"role":"assistant","tool_calls":[{"id":"call_1","type":"function",
      "function":{"name":"f"}}]},{"role":"tool","tool_call_id":"call_1","content":"a"}])";
  EXPECT_EQ(completed({}, kept), parse_ordered_json(kept));
}

TEST(CallCompletionTest, OtherIdsAreReplacedInCallsAndResults) {
  const std::string_view sent =
      R"([{"role":"assistant","tool_calls":[{"id":"toolu_1","type":"function",
      "function":{"name":"f"}},{"id":"abcDEF123","function":{"name":"g"}}]},
      {"role":"tool","tool_call_id":"abcDEF123","content":"a"},
      {"role":"tool","tool_call_id":"toolu_1","content":"b"}])";
  const OrderedJson messages = completed({.needs_short_ids = true}, sent);
  EXPECT_THAT(id_of(messages, 0, 0), MatchesRegex("[0-9a-f]{9}"));
  EXPECT_EQ(id_of(messages, 0, 1), "abcDEF123");
  EXPECT_EQ(messages[1]["tool_call_id"], "abcDEF123");
  EXPECT_EQ(messages[2]["tool_call_id"], id_of(messages, 0, 0));
  EXPECT_EQ(completed({.needs_short_ids = true}, sent), messages);
}

TEST(CallCompletionTest, ResultsWithoutIdsAreMatchedByNameAndOrder) {
  const OrderedJson messages = completed({.needs_names_of_results = true},
                                         R"([{"role":"assistant","tool_calls":[
      {"function":{"name":"f"}},{"function":{"name":"g"}},{"function":{"name":"g"}}]},
      {"role":"tool","content":"a"},{"role":"tool","tool_name":"g","content":"b"},
      {"role":"tool","name":"g","content":null}])");
  EXPECT_EQ(messages[0]["tool_calls"][0]["type"], "function");
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(id_of(messages, 0, i), MatchesRegex("call_[0-9a-f]{24}"));
    EXPECT_EQ(messages[1 + i]["tool_call_id"], id_of(messages, 0, i));
  }
  EXPECT_EQ(messages[1]["name"], "f");
  EXPECT_EQ(messages[2]["name"], "g");
  EXPECT_EQ(messages[3]["content"], "");
}

TEST(CallCompletionTest, AnIdThatComesAgainIsAnother) {
  const OrderedJson messages = completed({}, R"([
      {"role":"assistant","tool_calls":[{"id":"0","function":{"name":"f"}}]},
      {"role":"tool","tool_call_id":"0","content":"a"},
      {"role":"assistant","tool_calls":[{"id":"0","function":{"name":"f"}}]},
      {"role":"tool","tool_call_id":"0","content":"b"}])");
  EXPECT_EQ(messages[1]["tool_call_id"], "0");
  EXPECT_NE(id_of(messages, 2, 0), "0");
  EXPECT_EQ(messages[3]["tool_call_id"], id_of(messages, 2, 0));
}

TEST(CallCompletionTest, ArgumentsThatAreNoObject) {
  const auto of = [](bool as_text, std::string_view arguments) {
    OrderedJson messages = parse_ordered_json(
        R"([{"role":"assistant","content":"So","tool_calls":[{"function":{"name":"f","arguments":)" +
        std::string(arguments) + "}}]}]");
    complete_arguments({.takes_arguments_as_text = as_text}, messages);
    return std::pair(messages[0]["content"].get<std::string>(),
                     json_text(messages[0]["tool_calls"][0]["function"]["arguments"]));
  };
  for (const char* kept : {R"("{\"a\":1}")", R"({"a":1})", R"("")", R"(" ")", "null"}) {
    EXPECT_EQ(of(false, kept), std::pair(std::string("So"), std::string(kept)));
  }
  for (const char* broken : {R"("{\"a\":")", R"("null")", R"("[]")"}) {
    EXPECT_EQ(of(true, broken), std::pair(std::string("So"), std::string(broken)));
    EXPECT_EQ(of(false, broken),
              std::pair("So\n" + parse_json(broken).get<std::string>(), std::string("{}")));
  }
  EXPECT_EQ(of(false, "[1]"), std::pair(std::string("So\n[1]"), std::string("{}")));
}

TEST(CallCompletionTest, ToolsGetDescriptionsAndParameters) {
  OrderedJson tools = parse_ordered_json(
      R"([{"function":{"name":"f"}},{"function":{"name":"g","description":"G.","parameters":
          {"type":"object","properties":{"a":{"type":"string"},"b":true}}}}])");
  complete_tools(tools);
  EXPECT_EQ(
      json_text(tools),
      R"([{"function":{"name":"f","description":"","parameters":{"type":"object","properties":{}}}},)"
      R"({"function":{"name":"g","description":"G.","parameters":{"type":"object",)"
      R"("properties":{"a":{"type":"string","description":""},"b":true}}}}])");
}

}  // namespace
}  // namespace pagoda
