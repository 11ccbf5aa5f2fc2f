#include "core/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <istream>
#include <iterator>

template class nlohmann::basic_json<>;
template class nlohmann::basic_json<pagoda::OrderedObject>;

namespace pagoda {
namespace {

template <typename Json>
std::string text_of(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string rest_of(std::istream& stream) {
  return {std::istreambuf_iterator<char>(stream), {}};
}

// "line 3, column 7", where a text stops being JSON.
std::string fault_place(std::string_view text) {
  const auto keeps_nothing = [](int, nlohmann::json::parse_event_t, const nlohmann::json&) {
    return false;
  };
  try {
    const auto nothing = nlohmann::json::parse(text, keeps_nothing);
    return {};
  } catch (const nlohmann::json::parse_error& error) {
    // Its byte counts what was read, the one at fault included.
    const std::string_view before = text.substr(0, error.byte == 0 ? 0 : error.byte - 1);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    return fmt::format("line {}, column {}", line, before.size() - (before.rfind('\n') + 1) + 1);
  }
}

}  // namespace

nlohmann::json parse_json(std::string_view text, int max_depth) {
  nlohmann::json::parser_callback_t keeps;
  if (max_depth < std::numeric_limits<int>::max()) {
    keeps = [max_depth](int depth, nlohmann::json::parse_event_t, const nlohmann::json&) {
      return depth <= max_depth;
    };
  }
  return nlohmann::json::parse(text, keeps, /*allow_exceptions=*/false);
}

OrderedJson parse_ordered_json(std::string_view text) {
  return OrderedJson::parse(text, nullptr, /*allow_exceptions=*/false);
}

nlohmann::json parse_json(std::istream& stream) {
  return parse_json(rest_of(stream));
}

OrderedJson parse_ordered_json(std::istream& stream) {
  return parse_ordered_json(rest_of(stream));
}

Result<nlohmann::json> parse_json_file(std::string_view text, std::string_view where,
                                       int max_depth) {
  auto json = parse_json(text, max_depth);
  if (json.is_object()) return json;
  if (json.is_discarded())
    return data_loss("{}: expected JSON, got something else at {}", where, fault_place(text));
  return data_loss("{}: expected a JSON object, got {}", where, json.type_name());
}

std::string json_text(const nlohmann::json& value, int indent) {
  return text_of(value, indent);
}
std::string json_text(const OrderedJson& value) {
  return text_of(value, -1);
}

std::string json_string(std::string_view text) {
  return json_text(nlohmann::json(std::string(text)));
}

}  // namespace pagoda
