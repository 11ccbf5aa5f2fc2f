// Tests how a request's messages are normalised before rendering (rust/text/src/messages.rs).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "text/chat_template.h"

namespace pagoda {
namespace {

std::string rendered(std::string_view text, std::string_view messages, std::string_view tools = "",
                     std::string_view kwargs = "") {
  const auto chat_template = ChatTemplate::from_text("t", text);
  if (!chat_template.ok()) return "failed: " + chat_template.status().message();
  const auto result = chat_template->render(
      {.messages_json = messages, .tools_json = tools, .kwargs_json = kwargs});
  return result.ok() ? *result : "failed: " + result.status().message();
}

// Llama 3.1's template: a message with the key `tool_calls` is a call, even if the value is null.
constexpr std::string_view kAsksForTheKey =
    "{% for m in messages %}{% if 'tool_calls' in m %}{% if m.tool_calls | length != 1 %}"
    "{{ raise_exception('single tool-calls only') }}{% endif %}[call {{ "
    "m.tool_calls[0].function.name }}]"
    "{% else %}[{{ m.role }}: {{ m.content }}]{% endif %}{% endfor %}";

TEST(ChatMessagesTest, AnAnswerSentBackAsTheClientDumpsItKeepsItsText) {
  const std::string_view dumped = R"([{"role": "user", "content": "2 + 2?"},
      {"content": "4", "refusal": null, "role": "assistant", "annotations": null, "audio": null,
       "function_call": null, "tool_calls": null}, {"role": "user", "content": "Sure?"}])";
  EXPECT_EQ(rendered(kAsksForTheKey, dumped), "[user: 2 + 2?][assistant: 4][user: Sure?]");
  EXPECT_EQ(
      rendered(kAsksForTheKey, R"([{"role": "assistant", "content": "4", "tool_calls": []}])"),
      "[assistant: 4]");
  EXPECT_EQ(rendered(kAsksForTheKey, R"([{"role": "assistant", "content": null, "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}])"),
            "[call f]");
}

TEST(ChatMessagesTest, TemplatesSeeOnlyWhatTheyRead) {
  EXPECT_EQ(rendered("{{ messages[0] }}",
                     R"([{"role": "assistant", "content": "a", "refusal": "no", "weight": 1,
                "audio": {"id": 7}, "name": null, "tool_call_id": "1", "annotations": [{}]}])"),
            "{'role': 'assistant', 'content': 'a', 'tool_call_id': '1'}");
  EXPECT_EQ(
      rendered("{{ messages[0].tool_calls[0] }}",
               R"([{"role": "assistant", "tool_calls": [{"index": 0, "id": "1", "custom": null,
                "type": "function", "function": {"arguments": null, "name": "f", "parsed_arguments": {}}}]}])"),
      "{'id': '1', 'type': 'function', 'function': {'name': 'f', 'arguments': {}}}");
}

TEST(ChatMessagesTest, ReasoningIsReadUnderEachOfItsNames) {
  const std::string_view prints =
      "{{ messages[0].reasoning_content }}|{{ messages[0].reasoning }}|{{ messages[0].thinking }}";
  for (const char* name : {"reasoning_content", "reasoning", "thinking"}) {
    EXPECT_EQ(rendered(prints, fmt::format(R"([{{"role": "assistant", "{}": "hm"}}])", name)),
              "hm|hm|hm");
  }
  EXPECT_EQ(rendered("{{ 'thinking' in messages[0] }}",
                     R"([{"role": "assistant", "content": "a", "reasoning": null}])"),
            "False");
}

TEST(ChatMessagesTest, ThoughtsBesideACallAreNoErrorForGptOss) {
  const std::string_view refuses =
      "{% set message = messages[0] %}{% if message.content and message.thinking %}"
      "{{ raise_exception('not both') }}{% endif %}{{ message.content }}{{ message.thinking }}";
  const std::string_view calls = R"("tool_calls": [{"function": {"name": "f"}}])";
  const auto message = [&](std::string_view content) {
    return fmt::format(R"([{{"role": "assistant", "content": {}, "reasoning": "hm", {}}}])",
                       content, calls);
  };
  EXPECT_EQ(rendered(refuses, message("\"a\"")), "a");
  EXPECT_EQ(rendered(refuses, message("null")), "hm");
}

// DeepSeek's template finds calls by absent content and concatenates their arguments as text.
constexpr std::string_view kAsksForNone =
    "{% for m in messages %}{% if m['role'] == 'assistant' and m['content'] is none %}"
    "{{ '[call ' + m['tool_calls'][0]['function']['arguments'] + ']' }}{% else %}[{{ m['content'] "
    "}}]"
    "{% endif %}{% endfor %}";

TEST(ChatMessagesTest, CallsAreNotLostInATemplateThatLooksForNoContent) {
  const std::string_view messages = R"([{"role": "assistant", "content": null, "tool_calls": [
      {"function": {"name": "f", "arguments": "{\"b\":1, \"a\": 2}"}}]}])";
  EXPECT_EQ(rendered(kAsksForNone, messages), R"([call {"b":1, "a": 2}])");
  EXPECT_EQ(rendered("[{{ messages[0].content }}]", messages), "[]");
}

TEST(ChatMessagesTest, ArgumentsThatAreNoObjectStayText) {
  for (const std::string text : {"null", "[1]", "\\\"a\\\"", "{\\\"a\\\":"}) {
    EXPECT_EQ(rendered("{{ messages[0].tool_calls[0].function.arguments is string }}",
                       R"([{"role": "assistant", "tool_calls": [{"function": {"name": "f",
                           "arguments": ")" +
                           text + R"("}}]}])"),
              "True")
        << text;
  }
}

TEST(ChatMessagesTest, ObjectsAreInTheClientsOrder) {
  const std::string_view messages = R"([{"role": "assistant", "content": "", "tool_calls": [
      {"function": {"name": "f", "arguments": "{\"z\": {\"y\": 1, \"x\": 2}, \"a\": 3}"}}]}])";
  EXPECT_EQ(rendered("{{ messages[0].tool_calls[0].function.arguments }}"
                     "{{ messages[0].tool_calls[0].function | tojson }}",
                     messages),
            R"({'z': {'y': 1, 'x': 2}, 'a': 3})"
            R"({"name": "f", "arguments": {"z": {"y": 1, "x": 2}, "a": 3}})");
  EXPECT_EQ(rendered("{{ tools }}{% for k, v in things.items() %}{{ k }}{% endfor %}", messages,
                     R"([{"type": "function", "function": {"parameters": {}, "name": "f"}}])",
                     R"({"things": {"z": 1, "b": 2, "a": 3}})"),
            "[{'type': 'function', 'function': {'parameters': {}, 'name': 'f'}}]zba");
}

TEST(ChatMessagesTest, ATemplateThatLoopsOverToolsIfTheyAreIterableTakesAChatWithoutTools) {
  EXPECT_EQ(
      rendered("{% if tools is iterable and tools | length > 0 %}tools{% else %}none{% endif %}"
               "{{ nothing | length }}",
               R"([{"role": "user", "content": "Hi"}])"),
      "none0");
}

TEST(ChatMessagesTest, LineEndsOfATemplateAreReadAsOne) {
  const std::string_view messages = R"([{"role": "user", "content": "a\r\nb"}])";
  EXPECT_EQ(rendered("{% for m in messages %}\r\n  {% if true %}\r\n{{ m.content }}\r\n"
                     "  {% endif %}\r\n{% endfor %}\r\n",
                     messages),
            "a\r\nb\n");
}

}  // namespace
}  // namespace pagoda
