// For tests of tools and thoughts in /v1/chat/completions.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "tests/support/api_client.h"

namespace pagoda {

class ChatToolsTest : public ::testing::Test {
 protected:
  static constexpr const char* kChatPath = "/v1/chat/completions";

  static constexpr std::string_view kToolsText =
      R"([{"type": "function", "function": {"name": "get_weather", "description": "Weather.", )"
      R"("parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}, )"
      R"({"type": "function", "function": {"name": "now", "strict": null}}])";
  static inline const nlohmann::json kTools = parse_json(kToolsText);

  static nlohmann::json ask(const std::string& content,
                            nlohmann::json more = nlohmann::json::object()) {
    more["messages"] = {{{"role", "user"}, {"content", content}}};
    return more;
  }
  static nlohmann::json with_tools(const std::string& content,
                                   nlohmann::json more = nlohmann::json::object()) {
    more["tools"] = kTools;
    return ask(content, std::move(more));
  }
  nlohmann::json choice_of(const nlohmann::json& body) {
    return client_.answer(kChatPath, json_text(body)).at("choices").at(0);
  }
  nlohmann::json refusal_of(const nlohmann::json& body) {
    return client_.refusal(kChatPath, json_text(body));
  }
  std::string prompt_of(const nlohmann::json& body) { return prompt_of_text(json_text(body)); }
  std::string prompt_of_text(const std::string& body) {
    client_.answer(kChatPath, body);
    return client_.last_prompt();
  }

  static std::string call_of(const std::string& name) {
    return "<tool_call>\n{\"name\": \"" + name + "\", \"arguments\": {";
  }
  // Returns whether the grammar of a request's answers accepts such a beginning.
  bool may_begin(const nlohmann::json& body, const std::string& text) {
    client_.answer(kChatPath, json_text(body));
    return client_.may_begin(text);
  }

  // Joins the deltas of a stream, as OpenAI's clients do.
  nlohmann::json streamed(nlohmann::json body) {
    body["stream"] = true;
    nlohmann::json message = {{"content", ""}};
    nlohmann::json end;
    for (const nlohmann::json& event : client_.events(kChatPath, json_text(body))) {
      const nlohmann::json& choice = event.at("choices").at(0);
      const nlohmann::json& delta = choice.at("delta");
      for (const char* name : {"content", "reasoning_content", "reasoning"}) {
        if (delta.contains(name))
          message[name] = message.value(name, "") + delta.at(name).get<std::string>();
      }
      for (const nlohmann::json& call : delta.value("tool_calls", nlohmann::json::array())) {
        nlohmann::json& all = message["tool_calls"];
        const auto index = call.at("index").get<std::size_t>();
        if (index == all.size()) {
          all.push_back(call);
          continue;
        }
        nlohmann::json& arguments = all.at(index).at("function").at("arguments");
        arguments =
            arguments.get<std::string>() + call.at("function").at("arguments").get<std::string>();
      }
      if (!choice.at("finish_reason").is_null()) end = choice.at("finish_reason");
    }
    return {{"message", message}, {"finish_reason", end}};
  }

  // Returns a request with tools, whose keys are in the client's order.
  static std::string ask_with_tools_text() {
    return R"({"messages": [{"role": "user", "content": "say a"}], "tools": )" +
           std::string(kToolsText) + "}";
  }

  ApiClient client_;
};

}  // namespace pagoda
