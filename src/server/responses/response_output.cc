#include "server/responses/response_output.h"

#include "server/responses/stored_items.h"

namespace pagoda {
namespace {

using Kind = AnswerPart::Kind;
using Json = ResponseOutput::Json;

constexpr const char* kFunctionCall = "function_call";
constexpr const char* kCustomCall = "custom_tool_call";

Json thought_part(const std::string& text) {
  return {{"type", "reasoning_text"}, {"text", text}};
}

}  // namespace

void ResponseOutput::add(const AnswerPart& part, std::vector<Json>& events) {
  text_ += joiner_.added_by(part);
  if (part.kind == Kind::kCallEnd) return end_item("completed", events);
  const bool is_arguments = part.kind == Kind::kArguments;
  const bool goes_on =
      !item_.is_null() && part.kind != Kind::kCall && (is_arguments || kind_ == part.kind);
  if (!goes_on) {
    close("completed", events);
    open(part.kind, part.text, events);
  }
  if (part.kind == Kind::kCall) return;
  item_text_ += part.text;
  Json delta;
  if (is_arguments) {
    delta = event(is_custom_ ? "response.custom_tool_call_input.delta"
                             : "response.function_call_arguments.delta");
  } else if (part.kind == Kind::kThought) {
    delta = event_of_part("response.reasoning_text.delta");
  } else {
    delta = event_of_part("response.output_text.delta");
    delta["logprobs"] = std::exchange(new_logprobs_, Json::array());
  }
  delta["delta"] = part.text;
  events.push_back(std::move(delta));
}

void ResponseOutput::add_logprobs(Json content) {
  for (Json& token : content) {
    logprobs_.push_back(token);
    new_logprobs_.push_back(std::move(token));
  }
}

void ResponseOutput::open(Kind kind, const std::string& name, std::vector<Json>& events) {
  kind_ = kind;
  item_text_.clear();
  const auto id = [this](std::string_view of) { return item_id(of, response_id_, items_.size()); };
  if (kind == Kind::kCall) {
    is_custom_ = custom_calls_.has(name);
    item_ = {{"id", id(is_custom_ ? "ctc" : "fc")},
             {"type", is_custom_ ? kCustomCall : kFunctionCall},
             {"call_id", id("call")},
             {"name", name},
             {is_custom_ ? "input" : "arguments", ""},
             {"status", "in_progress"}};
  } else if (kind == Kind::kThought) {
    item_ = {{"id", id("rs")},
             {"type", "reasoning"},
             {"summary", Json::array()},
             {"content", Json::array()},
             {"status", "in_progress"}};
  } else {
    item_ = {{"id", id("msg")},
             {"type", "message"},
             {"role", "assistant"},
             {"content", Json::array()},
             {"status", "in_progress"}};
  }
  Json added = {
      {"type", "response.output_item.added"}, {"output_index", items_.size()}, {"item", item_}};
  events.push_back(std::move(added));
  if (kind == Kind::kCall) return;
  Json part = event_of_part("response.content_part.added");
  part["part"] = kind == Kind::kThought ? thought_part("") : text_part("", Json::array());
  events.push_back(std::move(part));
}

void ResponseOutput::close(std::string_view status, std::vector<Json>& events) {
  if (item_.is_null()) return;
  // A call ends with its last part, so one that is still open broke off.
  end_item(kind_ == Kind::kCall ? "incomplete" : status, events);
}

void ResponseOutput::end_item(std::string_view status, std::vector<Json>& events) {
  if (kind_ == Kind::kCall && is_custom_) {
    item_["input"] = item_text_;
    Json done = event("response.custom_tool_call_input.done");
    done["input"] = item_text_;
    events.push_back(std::move(done));
  } else if (kind_ == Kind::kCall) {
    item_["arguments"] = item_text_;
    Json done = event("response.function_call_arguments.done");
    done["name"] = item_.at("name");
    done["arguments"] = item_text_;
    events.push_back(std::move(done));
  } else if (kind_ == Kind::kThought) {
    Json done = event_of_part("response.reasoning_text.done");
    done["text"] = item_text_;
    events.push_back(std::move(done));
    close_part(thought_part(item_text_), events);
  } else {
    Json part = text_part(item_text_, std::exchange(logprobs_, Json::array()));
    Json done = event_of_part("response.output_text.done");
    done["text"] = item_text_;
    done["logprobs"] = part.at("logprobs");
    events.push_back(std::move(done));
    close_part(std::move(part), events);
  }
  item_["status"] = status;
  events.push_back(
      {{"type", "response.output_item.done"}, {"output_index", items_.size()}, {"item", item_}});
  items_.push_back(std::exchange(item_, nullptr));
}

void ResponseOutput::close_part(Json part, std::vector<Json>& events) {
  item_["content"].push_back(part);
  Json done = event_of_part("response.content_part.done");
  done["part"] = std::move(part);
  events.push_back(std::move(done));
}

RequestJson ResponseOutput::message() const {
  RequestJson message = {{"role", "assistant"}, {"content", nullptr}};
  if (!text_.empty()) message["content"] = text_;
  std::string thought;
  for (const Json& item : items_) {
    if (item.at("type") == "reasoning") thought += item.at("content").at(0).at("text");
    const bool is_custom = item.at("type") == kCustomCall;
    if (!is_custom && item.at("type") != kFunctionCall) continue;
    const auto text = [&item](const char* key) { return item.at(key).get<std::string>(); };
    const char* type = is_custom ? "custom" : "function";
    const char* key = is_custom ? "input" : "arguments";
    message["tool_calls"].push_back({{"id", text("call_id")},
                                     {"type", type},
                                     {type, {{"name", text("name")}, {key, text(key)}}}});
  }
  if (!thought.empty()) message["reasoning_content"] = thought;
  return message;
}

Json ResponseOutput::event(std::string_view type) const {
  return {{"type", type}, {"item_id", item_.at("id")}, {"output_index", items_.size()}};
}

Json ResponseOutput::event_of_part(std::string_view type) const {
  Json result = event(type);
  result["content_index"] = 0;
  return result;
}

Json ResponseOutput::text_part(const std::string& text, Json logprobs) const {
  return {{"type", "output_text"},
          {"text", text},
          {"annotations", Json::array()},
          {"logprobs", std::move(logprobs)}};
}

}  // namespace pagoda
