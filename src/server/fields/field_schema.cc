// Fields as JSON Schema.
#include <fmt/format.h>

#include <algorithm>

#include "core/json.h"
#include "server/fields/field_reader.h"

namespace pagoda {
namespace {

using nlohmann::json;

// Bounds of every field, whatever it declares: those of a 32-bit integer and of a float.
constexpr double kMinInt = std::numeric_limits<int>::min();
constexpr double kMaxInt = std::numeric_limits<int>::max();
constexpr double kMaxFloat = std::numeric_limits<float>::max();

json integer_schema(const Field& field) {
  const FieldRange& range = field.range;
  if (!range.values.empty())
    return {{"enum", std::vector<int>(range.values.begin(), range.values.end())}};
  json schema = {{"type", "integer"}};
  const std::int64_t minimum = static_cast<std::int64_t>(std::max(range.minimum, kMinInt));
  schema["minimum"] = range.exclusive_minimum ? minimum + 1 : minimum;
  schema["maximum"] = range.saturates ? std::numeric_limits<std::int64_t>::max()
                                      : static_cast<std::int64_t>(std::min(range.maximum, kMaxInt));
  if (!field.format.empty()) schema["format"] = field.format;
  return schema;
}

json number_schema(const FieldRange& range) {
  return {{"type", "number"},
          {range.exclusive_minimum ? "exclusiveMinimum" : "minimum",
           std::max(range.minimum, -kMaxFloat)},
          {"maximum", std::min(range.maximum, kMaxFloat)}};
}

json string_schema(const Field& field) {
  json schema = {{"type", "string"}, {"maxLength", field.size.max_chars}};
  if (!field.format.empty()) schema["format"] = field.format;
  return schema;
}

json list_schema(const Field& field, json items) {
  json schema = {
      {"type", "array"}, {"items", std::move(items)}, {"maxItems", field.size.max_items}};
  if (field.size.min_items > 0) schema["minItems"] = field.size.min_items;
  return schema;
}

template <typename T>
json with_default(json schema, const T& value) {
  schema["default"] = value;
  return schema;
}

struct Describer {
  const Field& field;

  json operator()(bool* value) const { return with_default({{"type", "boolean"}}, *value); }
  json operator()(int* value) const { return with_default(integer_schema(field), *value); }
  json operator()(std::optional<int>*) const { return integer_schema(field); }
  json operator()(std::optional<std::int64_t>*) const {
    return {{"type", "integer"},
            {"minimum", std::numeric_limits<std::int64_t>::min()},
            {"maximum", std::numeric_limits<std::int64_t>::max()}};
  }
  json operator()(float* value) const { return with_default(number_schema(field.range), *value); }
  json operator()(std::optional<float>*) const { return number_schema(field.range); }
  json operator()(std::string*) const { return string_schema(field); }
  json operator()(std::optional<std::string>*) const { return string_schema(field); }
  json operator()(std::vector<int>*) const { return list_schema(field, integer_schema(field)); }
  json operator()(std::vector<std::string>*) const {
    json items = {{"type", "string"}, {"maxLength", field.size.max_chars}};
    if (field.size.min_chars > 0) items["minLength"] = field.size.min_chars;
    return list_schema(field, std::move(items));
  }
  json operator()(const CustomField& custom) const { return parse_json(custom.schema); }
  json operator()(const RefusedField& refused) const {
    json schema = {{"enum", parse_json(refused.neutral)}};
    if (refused.neutral == RefusedField().neutral) schema["title"] = "NothingAsked";
    return schema;
  }
  json operator()(IgnoredField) const { return json::object(); }
};

// Returns a schema that accepts null besides. A schema without these keywords accepts null already.
json or_null(json schema) {
  if (const auto type = schema.find("type"); type != schema.end())
    *type = type->is_array() ? *type : json::array({*type});
  if (schema.contains("type")) schema["type"].push_back("null");
  if (schema.contains("enum")) schema["enum"].push_back(nullptr);
  if (schema.contains("anyOf")) schema["anyOf"].push_back({{"type", "null"}});
  return schema;
}

std::string description_of(const Field& field) {
  std::string text(field.description);
  const auto add = [&](std::string_view sentence) {
    text += text.empty() ? "" : " ";
    text += sentence;
  };
  if (const auto* refused = std::get_if<RefusedField>(&field.target)) {
    add("Not supported: only values that ask for nothing are accepted.");
    if (!refused->instead.empty()) add("Instead: " + std::string(refused->instead) + ".");
  }
  if (std::holds_alternative<IgnoredField>(field.target)) add("Accepted; changes nothing.");
  if (!field.from.empty()) add("(" + std::string(field.from) + ")");
  return text;
}

}  // namespace

nlohmann::json fields_schema(const std::vector<Field>& fields) {
  json schema = {{"type", "object"}, {"properties", json::object()}};
  json& properties = schema["properties"];
  for (const Field& field : fields) {
    json described = std::visit(Describer{field}, field.target);
    if (!field.required) described = or_null(std::move(described));
    json same = described;
    if (const std::string text = description_of(field); !text.empty())
      described["description"] = text;
    properties[std::string(field.name)] = std::move(described);
    if (field.required) schema["required"].push_back(field.name);
    same.erase("default");
    same["description"] = fmt::format("Means the same as {}.", field.name);
    std::vector<std::string_view> names = {field.name};
    for (const std::string_view alias : field.aliases) {
      properties[std::string(alias)] = same;
      for (const std::string_view other : names) add_rule_against_both(schema, other, alias);
      names.push_back(alias);
    }
  }
  return schema;
}

void add_rule(json& schema, json rule) {
  schema["not"]["anyOf"].push_back({{"not", std::move(rule)}});
}

void add_rule_against_both(json& schema, std::string_view a, std::string_view b) {
  const json given = {{"not", {{"type", "null"}}}};
  schema["not"]["anyOf"].push_back(
      {{"required", {a, b}}, {"properties", {{a, given}, {b, given}}}});
}

}  // namespace pagoda
