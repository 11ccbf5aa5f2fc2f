#include "model/hf/json_fields.h"

#include <cmath>
#include <optional>
#include <utility>

#include "weights/printable.h"

namespace pagoda {
namespace {

// Returns 2048 for 2048, or for 2048.0 as some tools write it; nothing for other values and for
// huge ones.
std::optional<std::int64_t> whole_number(const nlohmann::json& value) {
  constexpr double kLargest = 1LL << 53;
  if (!value.is_number()) return std::nullopt;
  const auto number = value.get<double>();
  if (!(std::fabs(number) <= kLargest) || std::trunc(number) != number) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

bool fits(const nlohmann::json& value, IntegerRange range) {
  const std::optional<std::int64_t> integer = whole_number(value);
  return integer && *integer >= range.min && *integer <= range.max;
}

std::string describe(IntegerRange range) {
  return fmt::format("an integer of {} to {}", range.min, range.max);
}

}  // namespace

const nlohmann::json* JsonFields::find(const char* key) const {
  const auto it = object_.find(key);
  return it == object_.end() || it->is_null() ? nullptr : &*it;
}

bool JsonFields::is_null(const char* key) const {
  const auto it = object_.find(key);
  return it != object_.end() && it->is_null();
}

Status JsonFields::wrong(const char* key, std::string_view expected) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) {
    return invalid_argument("[config] {}: {}: expected {}, but it is missing", where_, key,
                            expected);
  }
  return invalid_argument("[config] {}: {}: expected {}, got {}", where_, key, expected,
                          printable(value->dump(), 40));
}

Result<int> JsonFields::integer(const char* key, IntegerRange range) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr || !fits(*value, range)) return wrong(key, describe(range));
  return static_cast<int>(*whole_number(*value));
}

Result<double> JsonFields::number(const char* key, NumberRange range) const {
  const nlohmann::json* value = find(key);
  const double number =
      value != nullptr && value->is_number() ? value->get<double>() : range.min - 1;
  if (!(number >= range.min && number <= range.max)) {
    return wrong(key, fmt::format("a number of {} to {}", range.min, range.max));
  }
  return number;
}

Result<std::string> JsonFields::text(const char* key) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr || !value->is_string()) return wrong(key, "a string");
  return value->get<std::string>();
}

Result<std::vector<std::int64_t>> JsonFields::integers(const char* key, IntegerRange range) const {
  const nlohmann::json* value = find(key);
  std::vector<std::int64_t> integers;
  if (value == nullptr) return integers;
  const auto all = value->is_array() ? *value : nlohmann::json::array({*value});
  for (const nlohmann::json& element : all) {
    if (!fits(element, range)) return wrong(key, describe(range) + " or a list of them");
    integers.push_back(*whole_number(element));
  }
  return integers;
}

Result<std::vector<double>> JsonFields::numbers(const char* key, NumberRange range) const {
  const nlohmann::json* value = find(key);
  std::vector<double> numbers;
  if (value == nullptr) return numbers;
  const std::string expected = fmt::format("a list of numbers of {} to {}", range.min, range.max);
  if (!value->is_array()) return wrong(key, expected);
  for (const nlohmann::json& element : *value) {
    const double number = element.is_number() ? element.get<double>() : range.min - 1;
    if (!(number >= range.min && number <= range.max)) return wrong(key, expected);
    numbers.push_back(number);
  }
  return numbers;
}

Result<int> JsonFields::integer_or(const char* key, IntegerRange range, int otherwise) const {
  if (!has(key)) return otherwise;
  return integer(key, range);
}

Result<double> JsonFields::number_or(const char* key, NumberRange range, double otherwise) const {
  if (!has(key)) return otherwise;
  return number(key, range);
}

Result<bool> JsonFields::boolean_or(const char* key, bool otherwise) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean()) return wrong(key, "true or false");
  return value->get<bool>();
}

Result<std::string> JsonFields::text_or(const char* key, std::string_view otherwise) const {
  if (!has(key)) return std::string(otherwise);
  return text(key);
}

Result<JsonFields> JsonFields::object(const char* key) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr || !value->is_object()) return wrong(key, "an object");
  return JsonFields(*value, fmt::format("{}: {}", where_, key));
}

Result<nlohmann::json> parse_json_object(std::string_view text, std::string_view where) {
  return parse_json_file(text, fmt::format("[config] {}", where), /*max_depth=*/8);
}

}  // namespace pagoda
