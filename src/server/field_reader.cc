#include "server/field_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "server/request_json.h"

namespace pagoda {
namespace {

using nlohmann::json;
using MaybeError = std::optional<ApiError>;

std::string range_in_words(const FieldRange& range) {
  const bool has_minimum = std::isfinite(range.minimum);
  const bool has_maximum = std::isfinite(range.maximum);
  std::string minimum =
      fmt::format("{} {}", range.exclusive_minimum ? "above" : "at least", range.minimum);
  if (has_minimum && has_maximum) return fmt::format("{} and at most {}", minimum, range.maximum);
  if (has_minimum) return minimum;
  if (has_maximum) return fmt::format("at most {}", range.maximum);
  return "finite";
}

MaybeError check_range(std::string_view name, double value, const FieldRange& range) {
  const bool over_minimum =
      range.exclusive_minimum ? value > range.minimum : value >= range.minimum;
  if (over_minimum && value <= range.maximum && std::isfinite(value)) return {};
  return bad_request(
      std::string(name),
      fmt::format("'{}': expected a number {}, got {}", name, range_in_words(range), value),
      "out_of_range");
}

// An integer as JSON Schema has it: 5 and 5.0, but not 5.5, true or "5".
template <typename T>
MaybeError read_integer(std::string_view name, const RequestJson& value, const FieldRange& range,
                        T& out) {
  if (!value.is_number()) return wrong_type(name, "an integer", value);
  const double number = value.get<double>();
  if (number != std::floor(number)) {
    return bad_request(std::string(name),
                       fmt::format("'{}': expected an integer, got {}", name, number),
                       "invalid_type");
  }
  if (auto error = check_range(name, number, range)) return error;
  // Compared exactly where JSON has it exactly; 2^63 and the like are doubles, so the rest can be
  // compared as those.
  constexpr T kMax = std::numeric_limits<T>::max();
  const bool is_unsigned = value.is_number_unsigned();
  const bool fits = is_unsigned ? value.get<std::uint64_t>() <= static_cast<std::uint64_t>(kMax)
                                : number >= static_cast<double>(std::numeric_limits<T>::min()) &&
                                      number < std::ldexp(1.0, std::numeric_limits<T>::digits);
  if (!fits) {
    return bad_request(std::string(name),
                       fmt::format("'{}': expected an integer of {} bits, got {}", name,
                                   std::numeric_limits<T>::digits + 1, number),
                       "out_of_range");
  }
  out = value.is_number_float() ? static_cast<T>(number) : value.get<T>();
  return {};
}

MaybeError read_number(std::string_view name, const RequestJson& value, const FieldRange& range,
                       float& out) {
  if (!value.is_number()) return wrong_type(name, "a number", value);
  const double number = value.get<double>();
  if (auto error = check_range(name, number, range)) return error;
  out = static_cast<float>(number);
  if (std::isfinite(out)) return {};
  return bad_request(std::string(name), fmt::format("'{}': {} is too large", name, number),
                     "out_of_range");
}

MaybeError read_strings(std::string_view name, const RequestJson& value,
                        std::vector<std::string>& out) {
  if (!value.is_array()) return wrong_type(name, "a list of strings", value);
  out.clear();
  for (const RequestJson& item : value) {
    if (!item.is_string()) return wrong_type(name, "a list of strings", item);
    out.push_back(item.get<std::string>());
  }
  return {};
}

bool is_neutral(const RequestJson& value, const RefusedField& refused) {
  if (value.is_null() || value == RequestJson(false)) return true;
  if (value.is_string() && value.get_ref<const std::string&>().empty()) return true;
  if (value.is_structured() && value.empty()) return true;
  return !refused.also_neutral.empty() && value == RequestJson::parse(refused.also_neutral);
}

struct Reader {
  const Field& field;
  const RequestJson& value;

  MaybeError operator()(bool* out) const {
    if (!value.is_boolean()) return wrong_type(field.name, "true or false", value);
    *out = value.get<bool>();
    return {};
  }
  MaybeError operator()(int* out) const {
    return read_integer(field.name, value, field.range, *out);
  }
  MaybeError operator()(std::optional<int>* out) const {
    return read_integer(field.name, value, field.range, out->emplace());
  }
  MaybeError operator()(std::optional<std::int64_t>* out) const {
    return read_integer(field.name, value, field.range, out->emplace());
  }
  MaybeError operator()(float* out) const {
    return read_number(field.name, value, field.range, *out);
  }
  MaybeError operator()(std::optional<float>* out) const {
    return read_number(field.name, value, field.range, out->emplace());
  }
  MaybeError operator()(std::string* out) const {
    if (!value.is_string()) return wrong_type(field.name, "a string", value);
    *out = value.get<std::string>();
    return {};
  }
  MaybeError operator()(std::vector<int>* out) const {
    return read_ints(field.name, value, field.range, *out);
  }
  MaybeError operator()(std::vector<std::string>* out) const {
    return read_strings(field.name, value, *out);
  }
  MaybeError operator()(const CustomField& custom) const { return custom.read(value); }
  MaybeError operator()(const RefusedField& refused) const {
    if (is_neutral(value, refused)) return {};
    return bad_request(std::string(field.name), fmt::format("'{}' is not supported", field.name),
                       "unsupported_parameter");
  }
  MaybeError operator()(IgnoredField) const { return {}; }
};

json number_schema(const char* type, const FieldRange& range) {
  json schema = {{"type", type}};
  if (std::isfinite(range.minimum))
    schema[range.exclusive_minimum ? "exclusiveMinimum" : "minimum"] = range.minimum;
  if (std::isfinite(range.maximum)) schema["maximum"] = range.maximum;
  return schema;
}

template <typename T>
json with_default(json schema, const T& value) {
  schema["default"] = value;
  return schema;
}

template <typename T>
json nullable(json schema, const std::optional<T>& value) {
  schema["type"] = {schema["type"], "null"};
  if (value) schema["default"] = *value;
  return schema;
}

struct Describer {
  const Field& field;

  json operator()(bool* value) const { return with_default({{"type", "boolean"}}, *value); }
  json operator()(int* value) const {
    return with_default(number_schema("integer", field.range), *value);
  }
  json operator()(std::optional<int>* value) const {
    return nullable(number_schema("integer", field.range), *value);
  }
  json operator()(std::optional<std::int64_t>* value) const {
    return nullable(number_schema("integer", field.range), *value);
  }
  json operator()(float* value) const {
    return with_default(number_schema("number", field.range), *value);
  }
  json operator()(std::optional<float>* value) const {
    return nullable(number_schema("number", field.range), *value);
  }
  json operator()(std::string*) const { return {{"type", "string"}}; }
  json operator()(std::vector<int>*) const {
    return {{"type", "array"}, {"items", number_schema("integer", field.range)}};
  }
  json operator()(std::vector<std::string>*) const {
    return {{"type", "array"}, {"items", {{"type", "string"}}}};
  }
  json operator()(const CustomField& custom) const { return json::parse(custom.schema); }
  json operator()(const RefusedField&) const { return {}; }
  json operator()(IgnoredField) const { return {{"description", "Accepted; changes nothing."}}; }
};

}  // namespace

std::string_view type_in_words(const RequestJson& value) {
  switch (value.type()) {
    case RequestJson::value_t::null:
      return "null";
    case RequestJson::value_t::object:
      return "an object";
    case RequestJson::value_t::array:
      return "a list";
    case RequestJson::value_t::string:
      return "a string";
    case RequestJson::value_t::boolean:
      return "a boolean";
    default:
      return "a number";
  }
}

ApiError wrong_type(std::string_view param, std::string_view expected, const RequestJson& got) {
  return bad_request(std::string(param),
                     fmt::format("'{}': expected {}, got {}", param, expected, type_in_words(got)),
                     "invalid_type");
}

std::optional<ApiError> read_ints(std::string_view param, const RequestJson& value,
                                  const FieldRange& range, std::vector<int>& out) {
  if (!value.is_array()) return wrong_type(param, "a list of integers", value);
  out.clear();
  out.reserve(value.size());
  for (const RequestJson& item : value) {
    int number = 0;
    if (auto error = read_integer(param, item, range, number)) return error;
    out.push_back(number);
  }
  return {};
}

std::optional<ApiError> read_fields(const RequestJson& object, const std::vector<Field>& fields,
                                    std::vector<std::string>& unknown_names) {
  std::size_t num_known = 0;
  for (const Field& field : fields) {
    const auto found = object.find(field.name);
    if (found != object.end()) ++num_known;
    if (found == object.end() || found->is_null()) {
      if (!field.required) continue;
      return bad_request(std::string(field.name), fmt::format("'{}' is required", field.name),
                         "missing_required_parameter");
    }
    if (auto error = std::visit(Reader{field, *found}, field.target)) return error;
  }
  if (num_known == object.size()) return {};
  for (const auto& [name, value] : object.items()) {
    const auto is_name = [&name = name](const Field& field) { return field.name == name; };
    if (std::find_if(fields.begin(), fields.end(), is_name) == fields.end())
      unknown_names.push_back(name);
  }
  return {};
}

json fields_schema(const std::vector<Field>& fields) {
  json properties = json::object();
  json required = json::array();
  for (const Field& field : fields) {
    if (std::holds_alternative<RefusedField>(field.target)) continue;
    json schema = std::visit(Describer{field}, field.target);
    if (!field.description.empty()) schema["description"] = field.description;
    properties[std::string(field.name)] = std::move(schema);
    if (field.required) required.push_back(field.name);
  }
  json schema = {{"type", "object"}, {"properties", std::move(properties)}};
  if (!required.empty()) schema["required"] = std::move(required);
  return schema;
}

}  // namespace pagoda
