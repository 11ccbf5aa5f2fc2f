// Items and tools of /v1/responses that are no function's.
#include <gtest/gtest.h>

#include "core/json.h"
#include "tests/support/api_client.h"

namespace pagoda {
namespace {

using nlohmann::json;

constexpr const char* kItemsPath = "/v1/responses";

TEST(ResponseItems, CallsOfOtherToolsBecomeCallsOfFunctions) {
  ApiClient client;
  client.answer(kItemsPath, R"({"input": [
      {"role": "user", "content": "a"},
      {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}},
      {"type": "custom_tool_call", "call_id": "1", "name": "patch", "input": "x"},
      {"type": "custom_tool_call_output", "call_id": "1", "output": "done"},
      {"type": "local_shell_call", "id": "ls_1", "call_id": "2", "status": "completed",
       "action": {"type": "exec", "command": ["ls"]}},
      {"type": "local_shell_call_output", "id": "2", "output": "b.txt"},
      {"type": "shell_call", "call_id": "3", "action": {"commands": ["pwd"]}},
      {"type": "shell_call_output", "call_id": "3", "output": [{"stdout": "/", "stderr": ""}]},
      {"role": "user", "content": "say c"}]})");
  const auto call = [](const char* id, const char* name, const char* arguments) {
    return std::string(R"([{"id": ")") + id + R"(", "type": "function", "function": {"name": ")" +
           name + R"(", "arguments": )" + arguments + "}}]";
  };
  EXPECT_EQ(client.last_prompt(),
            "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n" +
                call("1", "patch", R"({"input": "x"})") +
                "<|im_end|>\n<|im_start|>tool\ndone<|im_end|>\n<|im_start|>assistant\n" +
                call("2", "local_shell", R"({"type": "exec", "command": ["ls"]})") +
                "<|im_end|>\n<|im_start|>tool\nb.txt<|im_end|>\n<|im_start|>assistant\n" +
                call("3", "shell", R"({"commands": ["pwd"]})") +
                R"(<|im_end|>
<|im_start|>tool
[{"stdout":"/","stderr":""}]<|im_end|>
<|im_start|>user
say c<|im_end|>
<|im_start|>assistant
)");
}

// Outputs follow their calls, whatever the model has said behind these.
TEST(ResponseItems, TextBehindACallIsAPartOfItsMessage) {
  ApiClient client;
  client.answer(kItemsPath, R"({"input": [
      {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},
      {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
      {"role": "assistant", "content": "c"},
      {"type": "function_call_output", "call_id": "1", "output": "d"},
      {"role": "assistant", "content": "e"}, {"role": "assistant", "content": "f"},
      {"role": "user", "content": "say g"}]})");
  EXPECT_EQ(client.last_prompt(), R"(<|im_start|>user
a<|im_end|>
<|im_start|>assistant
b
c[{"id": "1", "type": "function", "function": {"name": "f", "arguments": {}}}]<|im_end|>
<|im_start|>tool
d<|im_end|>
<|im_start|>assistant
e<|im_end|>
<|im_start|>assistant
f<|im_end|>
<|im_start|>user
say g<|im_end|>
<|im_start|>assistant
)");
}

TEST(ResponseItems, WhatIsNotReadIsNamed) {
  ApiClient client;
  const std::pair<const char*, const char*> cases[] = {
      {R"({"type": "compaction"})", R"('input[0].type': "compaction" is not supported)"},
      {R"({"type": "custom_tool_call", "call_id": "1", "name": "f"})",
       "'input[0].input': expected a string"},
      {R"({"type": "local_shell_call", "call_id": "1"})", "'input[0].action': expected an object"},
      {R"({"type": "shell_call", "action": {}})", "'input[0].call_id': expected a string"},
      {R"({"role": "user", "content": [{"type": "input_image", "image_url": "a"}]})",
       "'input[0].content': images, files and audio are not read, only texts"},
      {R"({"type": "function_call_output", "call_id": "1", "output": [{"type": "input_file"}]})",
       "'input[0].output': images, files and audio are not read, only texts"}};
  for (const auto& [item, message] : cases) {
    const std::string body = std::string(R"({"input": [)") + item + "]}";
    EXPECT_EQ(client.refusal(kItemsPath, body).at("message"), message);
  }
}

TEST(ResponseItems, ToolsThatOthersRunArePassedOverBesideFunctions) {
  ApiClient client;
  const json tools = parse_json(R"([{"type": "web_search"}, {"type": "function", "name": "f"},
      {"type": "local_shell"}, {"type": "namespace", "name": "n", "tools": []}])");
  const json body =
      client.answer(kItemsPath, json_text(json{{"input", "say a"}, {"tools", tools}}));
  EXPECT_EQ(body.at("tools"), tools);
  const json named = {{"input", "say a"}, {"tools", tools}, {"tool_choice", "required"}};
  client.answer(kItemsPath, json_text(named));
  EXPECT_TRUE(client.may_begin(R"(<tool_call>
{"name": "f")"));
  const json alone = {{"input", "a"}, {"tools", json::array({tools[0]})}};
  EXPECT_EQ(client.refusal(kItemsPath, json_text(alone)).at("message"),
            R"('tools[0].type': expected function or custom, got "web_search")");
}

}  // namespace
}  // namespace pagoda
