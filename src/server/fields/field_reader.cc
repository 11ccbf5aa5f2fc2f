#include "server/fields/field_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/json.h"
#include "core/utf8.h"
#include "server/base/json_body.h"

namespace pagoda {
namespace {

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

ApiError out_of_range(std::string_view name, std::string rest) {
  return bad_request(std::string(name), fmt::format("'{}': {}", name, rest), "out_of_range");
}

MaybeError check_range(std::string_view name, double value, const FieldRange& range) {
  const bool over_minimum =
      range.exclusive_minimum ? value > range.minimum : value >= range.minimum;
  if (over_minimum && value <= range.maximum && std::isfinite(value)) return {};
  return out_of_range(name,
                      fmt::format("expected a number {}, got {}", range_in_words(range), value));
}

// Reads an integer as JSON Schema defines it: 5 and 5.0, but not 5.5, true or "5".
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
  // Unsigned integers are compared as such, all other numbers as doubles. That is exact too: their
  // bounds, such as 2^63, are doubles themselves.
  constexpr T kMax = std::numeric_limits<T>::max();
  const bool is_unsigned = value.is_number_unsigned();
  const bool fits = is_unsigned ? value.get<std::uint64_t>() <= static_cast<std::uint64_t>(kMax)
                                : number >= static_cast<double>(std::numeric_limits<T>::min()) &&
                                      number < std::ldexp(1.0, std::numeric_limits<T>::digits);
  if (!fits) {
    return out_of_range(name, fmt::format("expected an integer of {} bits, got {}",
                                          std::numeric_limits<T>::digits + 1, number));
  }
  out = value.is_number_float() ? static_cast<T>(number) : value.get<T>();
  if (range.values.empty() ||
      std::find(range.values.begin(), range.values.end(), number) != range.values.end())
    return {};
  return out_of_range(name,
                      fmt::format("expected {}, got {}", fmt::join(range.values, " or "), number));
}

MaybeError read_int(const Field& field, const RequestJson& value, int& out) {
  if (!field.range.saturates) return read_integer(field.name, value, field.range, out);
  std::int64_t wide = 0;
  if (auto error = read_integer(field.name, value, field.range, wide)) return error;
  using Limits = std::numeric_limits<int>;
  out = static_cast<int>(std::clamp<std::int64_t>(wide, Limits::min(), Limits::max()));
  return {};
}

MaybeError read_number(std::string_view name, const RequestJson& value, const FieldRange& range,
                       float& out) {
  if (!value.is_number()) return wrong_type(name, "a number", value);
  const double number = value.get<double>();
  if (auto error = check_range(name, number, range)) return error;
  out = static_cast<float>(number);
  // Rounding to float must not bring a value down to a minimum that it has to exceed.
  if (range.exclusive_minimum && out <= range.minimum)
    out = std::nextafter(static_cast<float>(range.minimum), std::numeric_limits<float>::max());
  if (std::isfinite(out)) return {};
  return out_of_range(name, fmt::format("{} is too large", number));
}

MaybeError read_string(const Field& field, const RequestJson& value, std::string& out) {
  if (!value.is_string()) return wrong_type(field.name, "a string", value);
  out = value.get<std::string>();
  const std::size_t length = num_characters(out);
  if (length <= field.size.max_chars) return {};
  return out_of_range(field.name, fmt::format("expected at most {} characters, got {}",
                                              field.size.max_chars, length));
}

MaybeError check_num_items(const Field& field, std::size_t count) {
  if (count < field.size.min_items) {
    return out_of_range(field.name, fmt::format("expected at least {} in the list, got {}",
                                                field.size.min_items, count));
  }
  if (count <= field.size.max_items) return {};
  return out_of_range(field.name, fmt::format("expected at most {} in the list, got {}",
                                              field.size.max_items, count));
}

bool is_neutral(const RequestJson& value, const RefusedField& refused) {
  const auto neutral = parse_ordered_json(refused.neutral);
  return std::find(neutral.begin(), neutral.end(), value) != neutral.end();
}

struct Reader {
  const Field& field;
  const RequestJson& value;

  MaybeError operator()(bool* out) const {
    if (!value.is_boolean()) return wrong_type(field.name, "true or false", value);
    *out = value.get<bool>();
    return {};
  }
  MaybeError operator()(int* out) const { return read_int(field, value, *out); }
  MaybeError operator()(std::optional<int>* out) const {
    return read_int(field, value, out->emplace());
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
  MaybeError operator()(std::string* out) const { return read_string(field, value, *out); }
  MaybeError operator()(std::optional<std::string>* out) const {
    return read_string(field, value, out->emplace());
  }
  MaybeError operator()(std::vector<int>* out) const { return read_ints(field, value, *out); }
  MaybeError operator()(std::vector<std::string>* out) const {
    return read_strings(field, value, *out);
  }
  MaybeError operator()(const CustomField& custom) const { return custom.read(field.name, value); }
  MaybeError operator()(const RefusedField& refused) const {
    if (is_neutral(value, refused)) return {};
    return bad_request(std::string(field.name),
                       fmt::format("'{}' is not supported{}{}", field.name,
                                   refused.instead.empty() ? "" : ": ", refused.instead),
                       "unsupported_parameter");
  }
  MaybeError operator()(IgnoredField) const { return {}; }
};

// A field's value in an object, and the name under which it was sent.
struct Said {
  std::string_view name;
  const RequestJson* value = nullptr;  // null: the field was not sent
  MaybeError contradiction = {};
};

Said find_said(const RequestJson& object, const Field& field, std::size_t& num_known) {
  Said said;
  const auto look_up = [&](std::string_view name) {
    const auto found = object.find(name);
    if (found == object.end()) return;
    ++num_known;
    if (found->is_null() || said.contradiction) return;
    if (said.value == nullptr) {
      said = {.name = name, .value = &*found};
    } else if (*said.value != *found) {
      said.contradiction = bad_request(
          std::string(name),
          fmt::format("'{}' and '{}' mean the same, but their values differ", said.name, name));
    }
  };
  look_up(field.name);
  for (const std::string_view alias : field.aliases) look_up(alias);
  return said;
}

MaybeError read_field(const RequestJson& object, const Field& field, std::size_t& num_known) {
  Said said = find_said(object, field, num_known);
  if (said.contradiction) return std::move(said.contradiction);
  if (said.value != nullptr) {
    if (said.name == field.name) return std::visit(Reader{field, *said.value}, field.target);
    Field named = field;  // errors give the name that was sent
    named.name = said.name;
    return std::visit(Reader{named, *said.value}, field.target);
  }
  if (!field.required) return {};
  return bad_request(std::string(field.name), fmt::format("'{}' is required", field.name),
                     "missing_required_parameter");
}

void collect_unknown(const RequestJson& object, const std::vector<Field>& fields,
                     std::vector<std::string>& unknown_names) {
  std::set<std::string_view> known;
  for (const Field& field : fields) {
    known.insert(field.name);
    known.insert(field.aliases.begin(), field.aliases.end());
  }
  for (const auto& [name, value] : object.items()) {
    if (!known.contains(name)) unknown_names.push_back(name);
  }
}

}  // namespace

const RequestJson& value_of(const RequestJson& object, std::string_view key) {
  static const RequestJson null;
  const auto found = object.find(key);
  return found == object.end() ? null : *found;
}

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

std::optional<ApiError> read_ints(const Field& field, const RequestJson& value,
                                  std::vector<int>& out) {
  if (!value.is_array()) return wrong_type(field.name, "a list of integers", value);
  if (auto error = check_num_items(field, value.size())) return error;
  out.clear();
  out.reserve(value.size());
  for (const RequestJson& item : value) {
    int number = 0;
    if (auto error = read_int(field, item, number)) return error;
    out.push_back(number);
  }
  return {};
}

std::optional<ApiError> read_strings(const Field& field, const RequestJson& value,
                                     std::vector<std::string>& out) {
  if (!value.is_array()) return wrong_type(field.name, "a list of strings", value);
  if (auto error = check_num_items(field, value.size())) return error;
  out.clear();
  for (const RequestJson& item : value) {
    if (!item.is_string()) return wrong_type(field.name, "a list of strings", item);
    const std::size_t length = num_characters(item.get_ref<const std::string&>());
    if (length < field.size.min_chars) {
      return out_of_range(field.name, "a string must not be empty");
    }
    if (length > field.size.max_chars) {
      return out_of_range(field.name,
                          fmt::format("expected strings of at most {} characters, got one of {}",
                                      field.size.max_chars, length));
    }
    out.push_back(item.get<std::string>());
  }
  return {};
}

std::optional<ApiError> read_fields(const RequestJson& object, const std::vector<Field>& fields,
                                    std::vector<std::string>& unknown_names) {
  std::size_t num_known = 0;
  for (const Field& field : fields) {
    if (auto error = read_field(object, field, num_known)) return error;
  }
  if (num_known < object.size()) collect_unknown(object, fields, unknown_names);
  return {};
}

std::optional<ApiError> read_body_fields(std::string_view body, const std::vector<Field>& fields,
                                         std::vector<std::string>& unknown_names) {
  const auto parsed = parse_json_body(body);
  if (!parsed.ok()) return parsed.error();
  return read_fields(*parsed, fields, unknown_names);
}

std::optional<ApiError> read_inner_fields(const RequestJson& object,
                                          const std::vector<Field>& fields,
                                          std::string_view place) {
  std::size_t num_known = 0;
  for (const Field& field : fields) {
    auto error = read_field(object, field, num_known);
    if (!error) continue;
    if (error->message.starts_with('\''))
      error->message = fmt::format("'{}.{}", place, error->message.substr(1));
    error->param = fmt::format("{}.{}", place, error->param);
    return error;
  }
  return {};
}

}  // namespace pagoda
