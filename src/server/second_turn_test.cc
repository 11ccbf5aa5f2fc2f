// Sends answers back with the results of their calls, in each API and by the chat templates of 70
// models. tools/fetch_chat_templates.py fetches the templates.
#include <gtest/gtest.h>

#include <functional>

#include "core/text_file.h"
#include "tests/support/api_client.h"
#include "text/golden_files.h"

namespace pagoda {
namespace {

using nlohmann::json;

const json kParameters = {{"type", "object"}, {"properties", {{"place", {{"type", "string"}}}}}};
const json kTool = {{"type", "function"},
                    {"function", {{"name", "find_place"}, {"parameters", kParameters}}}};
const json kFlatTool = {{"type", "function"}, {"name", "find_place"}, {"parameters", kParameters}};
const json kAnthropicTool = {{"name", "find_place"}, {"input_schema", kParameters}};

const char* const kAnswers[] = {
    R"(Beta <tool_call>{"name": "find_place", "arguments": {"place": "Zeta"}}</tool_call><tool_call>{"name": "find_place", "arguments": {"place": "Eta"}}</tool_call>)",
    R"(<tool_call>{"name": "find_place", "arguments": {"place": "Zeta"}}</tool_call>)",
    R"(<tool_call>{"name": "find_place", "arguments": {"place": "Ze)",
    R"(<tool_call>{"name": "find_place", "arguments": null}</tool_call>)",
    "<think>Hm.</think>Beta",
};

json message_of(const char* role, const char* text) {
  return {{"role", role}, {"content", text}};
}

class SecondTurnTest : public ::testing::Test {
 protected:
  // Runs a test for each template and each answer.
  void with_each_template(const std::function<void()>& test) {
    const OrderedJson goldens = read_golden("jinja_goldens.json");
    const std::filesystem::path folder = chat_templates_folder(goldens);
    ASSERT_TRUE(std::filesystem::is_directory(folder)) << "no chat templates in " << folder;
    int num_templates = 0;
    for (const auto& [name, golden] : goldens["templates"].items()) {
      set_chat_template(client_.model(), read_text_file(folder / name).value());
      if (!takes_tools()) continue;
      ++num_templates;
      for (const char* answer : kAnswers) {
        SCOPED_TRACE(name + ", " + answer);
        if (HasFailure()) return;
        *answer_ = answer;
        test();
      }
    }
    EXPECT_GE(num_templates, 69);
  }

  // One template refuses all conversations without variables of its own.
  bool takes_tools() {
    return client_.model()
        .chat_template
        ->render(
            {.messages_json = R"([{"role": "user", "content": "Alpha"}])",
             .tools_json = R"([{"type": "function", "function": {"name": "f", "description": "F.",
                                     "parameters": {"type": "object", "properties": {}}}}])"})
        .ok();
  }

  json ask(const char* path, const json& body) { return client_.answer(path, json_text(body)); }
  void expect_in_prompt(std::string_view text) {
    EXPECT_NE(client_.last_prompt().find(text), std::string::npos)
        << text << " is not in " << client_.last_prompt();
  }

  std::shared_ptr<std::string> answer_ = std::make_shared<std::string>();
  ApiClient client_{{.max_model_len = 1 << 17, .thinks = true, .answer = answer_}};
};

TEST_F(SecondTurnTest, ChatCompletions) {
  with_each_template([&] {
    json body = {{"tools", {kTool}},
                 {"messages", {message_of("developer", "Delta"), message_of("user", "Alpha")}}};
    for (int turn = 0; turn < 2; ++turn) {
      const json message = ask("/v1/chat/completions", body).at("choices").at(0).at("message");
      body["messages"].push_back(message);
      for (const json& call : message.value("tool_calls", json::array())) {
        body["messages"].push_back(
            {{"role", "tool"}, {"tool_call_id", call.at("id")}, {"content", "Rho"}});
      }
      if (message.contains("tool_calls")) {
        ask("/v1/chat/completions", body);
        expect_in_prompt("Rho");
      }
      body["messages"].push_back(message_of("user", "Omega"));
    }
    ask("/v1/chat/completions", body);
    expect_in_prompt("Delta");
    expect_in_prompt("Omega");
  });
}

TEST_F(SecondTurnTest, Responses) {
  with_each_template([&] {
    json body = {{"tools", {kFlatTool}},
                 {"instructions", "Delta"},
                 {"input", {message_of("user", "Alpha")}}};
    json kept = body;
    for (int turn = 0; turn < 2; ++turn) {
      const json answer = ask("/v1/responses", body);
      json further = json::array();
      for (const json& item : answer.at("output")) {
        body["input"].push_back(item);
        if (item.at("type") != "function_call") continue;
        further.push_back(
            {{"type", "function_call_output"}, {"call_id", item.at("call_id")}, {"output", "Rho"}});
      }
      further.push_back(message_of("user", "Omega"));
      body["input"].insert(body["input"].end(), further.begin(), further.end());
      kept["previous_response_id"] = answer.at("id");
      kept["input"] = further;
      ask("/v1/responses", kept);
      expect_in_prompt("Omega");
    }
    ask("/v1/responses", body);
    expect_in_prompt("Delta");
    expect_in_prompt("Omega");
  });
}

TEST_F(SecondTurnTest, Messages) {
  with_each_template([&] {
    json body = {{"tools", {kAnthropicTool}},
                 {"system", "Delta"},
                 {"max_tokens", 500},
                 {"messages", {message_of("user", "Alpha")}}};
    for (int turn = 0; turn < 2; ++turn) {
      const json answer = ask("/v1/messages", body);
      json results = json::array();
      for (const json& block : answer.at("content")) {
        if (block.at("type") == "tool_use")
          results.push_back({{"type", "tool_result"}, {"tool_use_id", block.at("id")}});
      }
      results.push_back({{"type", "text"}, {"text", "Omega"}});
      body["messages"].push_back({{"role", "assistant"}, {"content", answer.at("content")}});
      body["messages"].push_back({{"role", "user"}, {"content", results}});
    }
    ask("/v1/messages", body);
    expect_in_prompt("Delta");
    expect_in_prompt("Omega");
  });
}

TEST_F(SecondTurnTest, Ollama) {
  with_each_template([&] {
    json body = {{"tools", {kTool}},
                 {"stream", false},
                 {"messages", {message_of("system", "Delta"), message_of("user", "Alpha")}}};
    for (int turn = 0; turn < 2; ++turn) {
      const json message = ask("/api/chat", body).at("message");
      body["messages"].push_back(message);
      for (const json& call : message.value("tool_calls", json::array())) {
        body["messages"].push_back(
            {{"role", "tool"}, {"tool_name", call.at("function").at("name")}, {"content", "Rho"}});
      }
      body["messages"].push_back(message_of("user", "Omega"));
    }
    ask("/api/chat", body);
    expect_in_prompt("Delta");
    expect_in_prompt("Omega");
  });
}

}  // namespace
}  // namespace pagoda
