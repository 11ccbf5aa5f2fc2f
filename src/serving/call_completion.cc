#include "serving/call_completion.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "answer/tool_messages.h"
#include "core/json.h"
#include "core/sha256.h"

namespace pagoda {
namespace {

using Json = OrderedJson;

constexpr std::size_t kShortIdChars = 9, kLongIdChars = 24;

// Returns a member's text; "": there is none.
std::string text_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

bool is_short_id(std::string_view id) {
  return id.size() == kShortIdChars && std::all_of(id.begin(), id.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
         });
}

// Chooses ids. They depend on the conversation up to them alone, so that a longer one begins with
// the same prompt.
class IdMaker {
 public:
  explicit IdMaker(bool are_short) : are_short_(are_short) {}

  // Returns `id` if it may stay, else a new one.
  std::string id_for(const std::string& id) {
    ++num_ids_;
    const bool may_stay = !id.empty() && (!are_short_ || is_short_id(id));
    if (may_stay && used_.insert(id).second) return id;
    std::string seed = id.empty() ? std::to_string(num_ids_) : id;
    std::string made = made_of(seed);
    while (!used_.insert(made).second) {
      seed += "/" + std::to_string(num_ids_);
      made = made_of(seed);
    }
    return made;
  }

 private:
  std::string made_of(const std::string& seed) const {
    const std::string digits = to_hex(sha256(seed));
    return are_short_ ? digits.substr(0, kShortIdChars) : "call_" + digits.substr(0, kLongIdChars);
  }

  const bool are_short_;
  int num_ids_ = 0;
  std::set<std::string> used_;
};

// The calls that have no result yet.
class OpenCalls {
 public:
  struct Call {
    std::string sent_id, name, id;
    bool is_open = true;
  };

  void add(Call call) {
    by_id_[call.sent_id].push_back(calls_.size());
    by_name_[call.name].push_back(calls_.size());
    in_order_.push_back(calls_.size());
    calls_.push_back(std::move(call));
  }

  // Each returns the first open call, and closes it; null: there is none.
  const Call* take_id(const std::string& id) { return id.empty() ? nullptr : take(by_id_, id); }
  const Call* take_name(const std::string& name) {
    return name.empty() ? nullptr : take(by_name_, name);
  }
  const Call* take_any() { return take_first(in_order_); }

 private:
  using Places = std::deque<std::size_t>;

  const Call* take(std::map<std::string, Places>& places, const std::string& key) {
    const auto found = places.find(key);
    return found == places.end() ? nullptr : take_first(found->second);
  }
  const Call* take_first(Places& places) {
    while (!places.empty()) {
      Call& call = calls_[places.front()];
      places.pop_front();
      if (!call.is_open) continue;
      call.is_open = false;
      return &call;
    }
    return nullptr;
  }

  std::vector<Call> calls_;
  std::map<std::string, Places> by_id_, by_name_;
  Places in_order_;
};

std::string function_name(const Json& result) {
  const std::string name = text_at(result, "name");
  return name.empty() ? text_at(result, "tool_name") : name;
}

class CallCompleter {
 public:
  explicit CallCompleter(const MessageTraits& traits)
      : needs_names_(traits.needs_names_of_results), ids_(traits.needs_short_ids) {}

  void complete(Json& messages) {
    for (std::size_t i = 0; i < messages.size(); ++i) {
      if (has_calls(messages[i])) {
        if (i == 0 || !has_calls(messages[i - 1])) open_ = {};
        for (Json& call : messages[i]["tool_calls"]) complete_call(call);
      }
      std::size_t end = i;
      while (end < messages.size() && messages[end].at("role") == "tool") ++end;
      if (end == i) continue;
      complete_results(std::span(&messages[i], end - i));
      i = end - 1;
    }
  }

 private:
  void complete_call(Json& call) {
    const std::string sent_id = text_at(call, "id");
    const std::string id = ids_.id_for(sent_id);
    if (id != sent_id) call["id"] = id;
    if (text_at(call, "type").empty()) call["type"] = "function";
    open_.add({.sent_id = sent_id, .name = text_at(call.at("function"), "name"), .id = id});
  }

  // Completes results that follow one another. Those with known ids are matched first.
  void complete_results(std::span<Json> results) {
    std::vector<const OpenCalls::Call*> calls(results.size(), nullptr);
    const auto match = [&](auto take) {
      for (std::size_t i = 0; i < results.size(); ++i) {
        if (calls[i] == nullptr) calls[i] = take(results[i]);
      }
    };
    match([&](const Json& result) { return open_.take_id(text_at(result, "tool_call_id")); });
    match([&](const Json& result) { return open_.take_name(function_name(result)); });
    match([&](const Json&) { return open_.take_any(); });
    for (std::size_t i = 0; i < results.size(); ++i) complete_result(results[i], calls[i]);
  }

  // `call`: null if there is none.
  void complete_result(Json& result, const OpenCalls::Call* call) {
    const std::string sent_id = text_at(result, "tool_call_id");
    const std::string id = call != nullptr ? call->id : ids_.id_for(sent_id);
    if (id != sent_id) result["tool_call_id"] = id;
    std::string name = function_name(result);
    if (needs_names_ && name.empty() && call != nullptr) name = call->name;
    if (!name.empty() && text_at(result, "name").empty()) result["name"] = name;
    if (result["content"].is_null()) result["content"] = "";
  }

  const bool needs_names_;
  IdMaker ids_;
  OpenCalls open_;
};

// Returns the text of arguments that are no JSON object; "": they are one, or empty.
std::string broken_arguments(const Json& arguments) {
  if (arguments.is_object() || arguments.is_null()) return "";
  if (!arguments.is_string()) return json_text(arguments);
  const auto& text = arguments.get_ref<const std::string&>();
  const bool is_blank = text.find_first_not_of(" \t\r\n") == std::string::npos;
  return is_blank || is_json_object(text) ? std::string() : text;
}

void append_text(Json& message, const std::string& text) {
  Json& content = message["content"];
  if (content.is_array()) {
    content.push_back({{"type", "text"}, {"text", text}});
    return;
  }
  const std::string before = content_text(message);
  content = before.empty() ? text : before + "\n" + text;
}

void set_if_null(Json& object, const char* key, Json value) {
  if (Json& member = object[key]; member.is_null()) member = std::move(value);
}

}  // namespace

void complete_calls(const MessageTraits& traits, OrderedJson& messages) {
  CallCompleter(traits).complete(messages);
}

void complete_arguments(const MessageTraits& traits, OrderedJson& messages) {
  for (Json& message : messages) {
    if (!has_calls(message)) continue;
    for (Json& call : message["tool_calls"]) {
      Json& function = call.at("function");
      const auto arguments = function.find("arguments");
      if (arguments == function.end()) continue;
      const std::string text = broken_arguments(*arguments);
      if (text.empty()) continue;
      if (!traits.takes_arguments_as_text) {
        *arguments = Json::object();
        append_text(message, text);
      } else {
        *arguments = text;
      }
    }
  }
}

void complete_tools(OrderedJson& tools) {
  for (Json& tool : tools) {
    Json& function = tool.at("function");
    set_if_null(function, "description", "");
    set_if_null(function, "parameters", {{"type", "object"}, {"properties", Json::object()}});
    Json& parameters = function.at("parameters");
    const auto properties = parameters.find("properties");
    if (properties == parameters.end() || !properties->is_object()) continue;
    for (auto& [name, property] : properties->items()) {
      if (property.is_object()) set_if_null(property, "description", "");
    }
  }
}

}  // namespace pagoda
