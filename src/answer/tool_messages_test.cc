#include "answer/tool_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/json.h"

namespace pagoda {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::string_view kTools =
    R"([{"type": "function", "function": {"name": "f", "parameters": {"z": 1, "a": 2}}}])";

json described(std::string_view messages_json) {
  OrderedJson messages = parse_ordered_json(messages_json);
  describe_tools(messages, parse_ordered_json(kTools));
  return parse_json(json_text(messages));
}

TEST(DescribeTools, StandInTheSystemsMessage) {
  const json added = described(R"([{"role": "user", "content": "hi"}])");
  ASSERT_EQ(added.size(), 2u);
  EXPECT_EQ(added[0].at("role"), "system");
  // Keys keep the client's order.
  EXPECT_THAT(added[0].at("content").get<std::string>(), HasSubstr(R"(<tools>
{"type":"function","function":{"name":"f","parameters":{"z":1,"a":2}}}
</tools>)"));
  EXPECT_EQ(added[1], parse_json(R"({"role": "user", "content": "hi"})"));

  const json joined = described(
      R"([{"role": "system", "content": ["Be", {"type": "text", "text": "kind."}]},
          {"role": "user", "content": "hi"}])");
  ASSERT_EQ(joined.size(), 2u);
  EXPECT_THAT(joined[0].at("content").get<std::string>(), StartsWith("Be\nkind.\n\nYou can call"));
}

TEST(ToolMessages, EarlierCallsAndResultsAreText) {
  OrderedJson rewritten = parse_ordered_json(
      R"([{"role": "user", "content": "hi"},
          {"role": "assistant", "content": null, "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{\"a\": 1}"}},
            {"id": "2", "type": "function", "function": {"name": "g", "arguments": {}}},
            {"id": "3", "type": "function", "function": {"name": "h", "arguments": ""}}]},
          {"role": "tool", "tool_call_id": "1", "content": "42"},
          {"role": "assistant", "content": "So.", "tool_calls": null}])");
  for (OrderedJson& message : rewritten) {
    write_calls_as_text(message);
    if (message.at("role") == "tool") write_result_as_text(message);
  }
  const json messages = parse_json(json_text(rewritten));
  EXPECT_EQ(messages[1].at("content"),
            "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>\n"
            "<tool_call>\n{\"name\": \"g\", \"arguments\": {}}\n</tool_call>\n"
            "<tool_call>\n{\"name\": \"h\", \"arguments\": {}}\n</tool_call>");
  EXPECT_FALSE(messages[1].contains("tool_calls"));
  EXPECT_EQ(messages[2], parse_json(R"({"role": "user", "content":
      "<tool_response>\n42\n</tool_response>"})"));
  EXPECT_EQ(messages[3], parse_json(R"({"role": "assistant", "content": "So."})"));
}

}  // namespace
}  // namespace pagoda
