// The APIs whose answers are lists of items: responses and messages.
#include <gtest/gtest.h>

#include "answer/answer_content.h"
#include "core/json.h"
#include "server/sent_back_rig.h"

namespace pagoda {
namespace {

using Json = OrderedJson;

// Adds one of an answer's texts to the content, which other APIs have in one piece.
void add_line(const std::string& text, std::string& content) {
  if (!content.empty()) content += before_further(text);
  content += text;
}

class Responses : public ApiUnderTest {
 public:
  const char* path() const override { return "/v1/responses"; }

  Json first_request(const ScriptedAnswer& script, int max_tokens) const override {
    Json body = base();
    body["max_output_tokens"] = max_tokens;
    if (!script.stop.empty()) body["stop"] = script.stop;
    if (script.must_call) body["tool_choice"] = "required";
    if (script.has_one_call) body["parallel_tool_calls"] = false;
    return body;
  }

  Json answer_in(Json body) const override { return body; }

  // Returns the last event's response. The items put together from deltas must be its own.
  Json assembled(const std::vector<Json>& events) const override {
    Json items = Json::array();
    for (const Json& event : events) {
      const std::string type = text_at(event, "type");
      if (type == "response.output_item.added") items.push_back(event.at("item"));
      if (!type.ends_with(".delta")) continue;
      Json& item = items.at(event.at("output_index").get<std::size_t>());
      const std::string delta = text_at(event, "delta");
      if (item.at("type") == "function_call") {
        extend(item, "arguments", delta);
      } else {
        extend(item, "streamed", delta);
      }
    }
    Json response = events.back().at("response");
    const Json& output = response.at("output");
    EXPECT_EQ(items.size(), output.size());
    for (std::size_t i = 0; i < items.size() && i < output.size(); ++i) {
      EXPECT_EQ(items[i].at("id"), output[i].at("id"));
      EXPECT_EQ(text_at(items[i], "name"), text_at(output[i], "name"));
      EXPECT_EQ(text_at(items[i], "arguments"), text_at(output[i], "arguments"));
      EXPECT_EQ(text_at(items[i], "streamed"), text_of(output[i]));
    }
    return response;
  }

  ToldAnswer told(const Json& answer) const override {
    ToldAnswer told;
    for (const Json& item : answer.at("output")) {
      if (item.at("type") == "reasoning") told.thought += text_of(item);
      if (item.at("type") == "message") add_line(text_of(item), told.content);
      if (item.at("type") != "function_call") continue;
      told.calls.emplace_back(text_at(item, "name"), text_at(item, "arguments"));
      told.has_broken_call |= item.at("status") == "incomplete";
    }
    told.reason = told.calls.empty() || told.has_broken_call ? "stop" : "calls";
    if (answer.at("status") == "incomplete") told.reason = "length";
    return told;
  }

  Json next_request(const Json& answer) const override {
    Json body = base();
    for (const Json& item : answer.at("output")) body["input"].push_back(item);
    for (const Json& item : further_items(answer)) body["input"].push_back(item);
    return body;
  }

 protected:
  static Json base() {
    Json tools = parse_ordered_json(kScriptedFunctions);
    for (Json& tool : tools) tool["type"] = "function";
    return {{"tools", std::move(tools)}, {"input", {message_of("user", kQuestion)}}};
  }

  static Json further_items(const Json& answer) {
    Json items = Json::array();
    for (const Json& item : answer.at("output")) {
      if (item.at("type") == "function_call") {
        items.push_back({{"type", "function_call_output"},
                         {"call_id", item.at("call_id")},
                         {"output", kResult}});
      }
    }
    items.push_back(message_of("user", kNextQuestion));
    return items;
  }

 private:
  static std::string text_of(const Json& item) {
    std::string text;
    for (const Json& part : item.value("content", Json::array()))
      text += part.at("text").get<std::string>();
    return text;
  }
};

class StoredResponses : public Responses {
 public:
  Json next_request(const Json& answer) const override {
    Json body = base();
    body["previous_response_id"] = answer.at("id");
    body["input"] = further_items(answer);
    return body;
  }
};

class Messages : public ApiUnderTest {
 public:
  const char* path() const override { return "/v1/messages"; }

  Json first_request(const ScriptedAnswer& script, int max_tokens) const override {
    Json body = base();
    body["max_tokens"] = max_tokens;
    if (!script.stop.empty()) body["stop_sequences"] = {script.stop};
    if (script.must_call) body["tool_choice"] = {{"type", "any"}};
    if (script.has_one_call)
      body["tool_choice"] = {{"type", "auto"}, {"disable_parallel_tool_use", true}};
    return body;
  }

  Json answer_in(Json body) const override { return body; }

  Json assembled(const std::vector<Json>& events) const override {
    Json message;
    for (const Json& event : events) {
      const std::string type = text_at(event, "type");
      if (type == "message_start") message = event.at("message");
      if (type == "content_block_start") message["content"].push_back(event.at("content_block"));
      if (type == "content_block_delta")
        add_delta(event.at("delta"), message["content"].at(event.at("index").get<std::size_t>()));
      if (type == "message_delta") message.update(event.at("delta"));
    }
    for (Json& block : message["content"]) {
      if (!block.contains("partial")) continue;
      block["input"] = parse_ordered_json(text_at(block, "partial"));
      block.erase("partial");
    }
    return message;
  }

  ToldAnswer told(const Json& answer) const override {
    ToldAnswer told;
    for (const Json& block : answer.at("content")) {
      add_line(text_at(block, "text"), told.content);
      told.thought += text_at(block, "thinking");
      if (block.at("type") == "tool_use")
        told.calls.emplace_back(text_at(block, "name"), json_text(block.at("input")));
    }
    const std::string reason = text_at(answer, "stop_reason");
    told.reason = told.calls.empty() ? "stop" : "calls";
    if (reason == "max_tokens") told.reason = "length";
    EXPECT_TRUE(reason == "max_tokens" || reason == "stop_sequence" ||
                reason == (told.calls.empty() ? "end_turn" : "tool_use"))
        << reason;
    return told;
  }

  Json next_request(const Json& answer) const override {
    Json body = base();
    body["messages"].push_back(message_of("assistant", answer.at("content")));
    Json blocks = Json::array();
    for (const Json& block : answer.at("content")) {
      if (block.at("type") == "tool_use") {
        blocks.push_back(
            {{"type", "tool_result"}, {"tool_use_id", block.at("id")}, {"content", kResult}});
      }
    }
    blocks.push_back({{"type", "text"}, {"text", kNextQuestion}});
    body["messages"].push_back(message_of("user", blocks));
    return body;
  }

 private:
  static Json base() {
    Json tools = parse_ordered_json(kScriptedFunctions);
    for (Json& tool : tools) {
      const auto parameters = tool.find("parameters");
      if (parameters != tool.end()) tool["input_schema"] = Json(*parameters);
      tool.erase("parameters");
    }
    return {{"tools", std::move(tools)},
            {"max_tokens", 1000},
            {"messages", {message_of("user", kQuestion)}}};
  }

  static void add_delta(const Json& delta, Json& block) {
    if (delta.at("type") == "text_delta") extend(block, "text", text_at(delta, "text"));
    if (delta.at("type") == "thinking_delta") extend(block, "thinking", text_at(delta, "thinking"));
    if (delta.at("type") == "input_json_delta")
      extend(block, "partial", text_at(delta, "partial_json"));
  }
};

}  // namespace

std::unique_ptr<ApiUnderTest> responses_under_test() {
  return std::make_unique<Responses>();
}
std::unique_ptr<ApiUnderTest> stored_responses_under_test() {
  return std::make_unique<StoredResponses>();
}
std::unique_ptr<ApiUnderTest> messages_under_test() {
  return std::make_unique<Messages>();
}

}  // namespace pagoda
