#include "server/responses/stored_items.h"

#include <fmt/format.h>

#include <set>
#include <string_view>
#include <utility>

#include "core/json.h"
#include "server/fields/field_reader.h"

namespace pagoda {
namespace {

constexpr std::string_view kResponsePrefix = "resp_";
constexpr std::size_t kNumResponseDigits = 32;
// Marks the numbers of a response's input items, which are told apart from those of its output.
constexpr std::string_view kInputMark = "i";

std::string digits_of(std::string_view response_id) {
  return std::string(response_id.substr(response_id.find('_') + 1));
}

// Returns the id of the response that an item belongs to.
std::string response_of(std::string_view item_id) {
  const std::size_t begin = item_id.find('_') + 1;  // 0 if there is none
  return std::string(kResponsePrefix) + std::string(item_id.substr(begin, kNumResponseDigits));
}

bool is_reference(const RequestJson& item) {
  if (!item.is_object()) return false;
  const RequestJson& type = value_of(item, "type");
  if (!type.is_null()) return type == RequestJson("item_reference");
  return item.contains("id") && !item.contains("role");
}

ApiError reference_error(std::size_t index, std::string_view rest) {
  return bad_request("input", fmt::format("'input[{}]{}", index, rest));
}

ApiError not_stored(std::size_t index, std::string_view id) {
  return {404, fmt::format("'input[{}].id': no item '{}' is stored", index, id), "input",
          "item_not_found"};
}

RequestJson text_list(const char* type, const RequestJson& text) {
  RequestJson part = {{"type", type}, {"text", text}};
  if (part.at("type") == RequestJson("output_text")) part["annotations"] = RequestJson::array();
  return RequestJson::array({std::move(part)});
}

// A builder of items from chat messages.
class ItemBuilder {
 public:
  explicit ItemBuilder(std::string_view response_id) : response_id_(response_id) {}

  void add(const RequestJson& message) {
    const RequestJson& role = value_of(message, "role");
    const RequestJson& content = value_of(message, "content");
    if (role == RequestJson("tool")) return add_output(message);
    if (const RequestJson& thought = value_of(message, "reasoning_content"); !thought.is_null()) {
      push({{"id", id("rs")},
            {"type", "reasoning"},
            {"summary", RequestJson::array()},
            {"content", text_list("reasoning_text", thought)},
            {"status", "completed"}});
    }
    if (!content.is_null()) {
      const bool is_answer = role == RequestJson("assistant");
      push({{"id", id("msg")},
            {"type", "message"},
            {"role", role},
            {"content", text_list(is_answer ? "output_text" : "input_text", content)},
            {"status", "completed"}});
    }
    const RequestJson& calls = value_of(message, "tool_calls");
    for (const RequestJson& call : calls) add_call(call);
  }

  RequestJson take() { return std::move(items_); }

 private:
  void add_call(const RequestJson& call) {
    const RequestJson& call_id = value_of(call, "id");
    if (value_of(call, "type") == RequestJson("custom")) {
      const RequestJson& custom = call.at("custom");
      custom_ids_.insert(call_id.get<std::string>());
      push({{"id", id("ctc")},
            {"type", "custom_tool_call"},
            {"call_id", call_id},
            {"name", value_of(custom, "name")},
            {"input", value_of(custom, "input")},
            {"status", "completed"}});
      return;
    }
    const RequestJson& function = call.at("function");
    const RequestJson& arguments = value_of(function, "arguments");
    push({{"id", id("fc")},
          {"type", "function_call"},
          {"call_id", call_id},
          {"name", value_of(function, "name")},
          {"arguments", arguments.is_string() ? arguments : RequestJson(json_text(arguments))},
          {"status", "completed"}});
  }

  void add_output(const RequestJson& message) {
    const RequestJson& call_id = value_of(message, "tool_call_id");
    const bool is_custom = call_id.is_string() && custom_ids_.contains(call_id.get<std::string>());
    push({{"id", id(is_custom ? "ctco" : "fco")},
          {"type", is_custom ? "custom_tool_call_output" : "function_call_output"},
          {"call_id", call_id},
          {"output", value_of(message, "content")},
          {"status", "completed"}});
  }

  std::string id(std::string_view kind) const {
    return fmt::format("{}_{}{}{:04x}", kind, digits_of(response_id_), kInputMark, items_.size());
  }
  void push(RequestJson item) { items_.push_back(std::move(item)); }

  std::string_view response_id_;
  RequestJson items_ = RequestJson::array();
  std::set<std::string> custom_ids_;  // of the calls of custom tools
};

using ItemsById = std::map<std::string, RequestJson>;

void add_items(RequestJson items, ItemsById& all) {
  for (RequestJson& item : items) {
    const RequestJson& id = value_of(item, "id");
    if (id.is_string()) all.emplace(id.get<std::string>(), std::move(item));
  }
}

ApiError too_large(std::size_t index) {
  return reference_error(
      index, fmt::format("': expected references to at most {} bytes of stored responses, got more",
                         kMaxReferencedBytes));
}

}  // namespace

std::string item_id(std::string_view kind, std::string_view response_id, std::size_t number) {
  return fmt::format("{}_{}{:04x}", kind, digits_of(response_id), number);
}

RequestJson input_items_of(const StoredResponse& response, std::string_view response_id) {
  const std::string_view input =
      response.messages->view().substr(response.input_offset, response.num_input_bytes);
  ItemBuilder builder(response_id);
  for (const RequestJson& message : parse_ordered_json(fmt::format("[{}]", input)))
    builder.add(message);
  return builder.take();
}

ApiResult<ReferencedResponses> find_referenced(const ResponseStore& store,
                                               const std::string& client,
                                               const RequestJson& input) {
  ReferencedResponses found;
  if (!input.is_array()) return found;
  std::size_t num_bytes = 0;
  for (std::size_t i = 0; i < input.size(); ++i) {
    if (!is_reference(input[i])) continue;
    const RequestJson& id = value_of(input[i], "id");
    if (!id.is_string()) return reference_error(i, ".id': expected a string");
    const auto& text = id.get_ref<const std::string&>();
    const std::string response_id = response_of(text);
    if (found.contains(response_id)) continue;
    auto response = store.find(client, response_id);
    if (!response) return not_stored(i, text);
    num_bytes += response->num_bytes();
    if (num_bytes > kMaxReferencedBytes) return too_large(i);
    found.emplace(response_id, *std::move(response));
  }
  return found;
}

std::optional<ApiError> resolve_references(const ReferencedResponses& responses,
                                           RequestJson& input) {
  if (responses.empty()) return {};
  ItemsById items;
  for (const auto& [id, response] : responses) {
    RequestJson body = parse_ordered_json(response.body->view());
    add_items(std::move(body.at("output")), items);
    add_items(input_items_of(response, id), items);
  }
  std::size_t num_bytes = 0;
  for (std::size_t i = 0; i < input.size(); ++i) {
    if (!is_reference(input[i])) continue;
    const auto id = input[i].at("id").get<std::string>();
    const auto item = items.find(id);
    if (item == items.end()) return not_stored(i, id);
    num_bytes += json_text(item->second).size();
    if (num_bytes > kMaxReferencedBytes) return too_large(i);
    input[i] = item->second;
  }
  return {};
}

}  // namespace pagoda
