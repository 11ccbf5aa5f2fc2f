#include "core/json.h"

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
