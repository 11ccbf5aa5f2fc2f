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

// Parses a text only to find the place of its first error.
class FaultFinder : public nlohmann::json_sax<nlohmann::json> {
 public:
  // Returns what the text has instead of JSON, and where: "something else at line 3, column 7". A
  // number beyond a double's range is an error, too.
  std::string fault(std::string_view text) {
    nlohmann::json::sax_parse(text.begin(), text.end(), this);
    const std::string_view before = text.substr(0, num_bytes_before_);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const std::size_t column = before.size() - (before.rfind('\n') + 1) + 1;
    return fmt::format("{} at line {}, column {}", what_, line, column);
  }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return true; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }

  // `num_read` counts the bytes up to and including the wrong one. If a number is out of range, it
  // counts the bytes up to the number's end.
  bool parse_error(std::size_t num_read, const std::string& token,
                   const nlohmann::json::exception& error) override {
    if (dynamic_cast<const nlohmann::json::out_of_range*>(&error) != nullptr) {
      what_ = "a number beyond the range of a double";
      num_bytes_before_ = num_read - std::min(num_read, token.size());
    } else {
      num_bytes_before_ = num_read - std::min<std::size_t>(num_read, 1);
    }
    return false;
  }

 private:
  std::string_view what_ = "something else";
  std::size_t num_bytes_before_ = 0;
};

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

bool is_json(std::string_view text) {
  return text.find('\0') == std::string_view::npos && !text.starts_with("\xef\xbb\xbf") &&
         nlohmann::json::accept(text);
}

bool is_json_object(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  return begin != std::string_view::npos && text[begin] == '{' && is_json(text);
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
    return data_loss("{}: expected JSON, got {}", where, FaultFinder().fault(text));
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
