#include "server/grammar_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "server/json_body.h"
#include "server/request_json.h"

namespace pagoda {
namespace {

using MaybeError = std::optional<ApiError>;

constexpr std::string_view kResponseFormat = "response_format";
constexpr std::string_view kStructuredOutputs = "structured_outputs";

constexpr std::string_view kResponseFormatSchema =
    R"({"type": ["object", "null"], "required": ["type"], "properties": {
  "type": {"enum": ["text", "json_object", "json_schema"]},
  "json_schema": {"type": "object", "required": ["schema"], "properties": {"name": {"type": "string"},
    "description": {"type": "string"}, "schema": {"type": "object"}, "strict": {"type": ["boolean", "null"]}}}}})";
constexpr std::string_view kStructuredOutputsSchema =
    R"({"type": ["object", "null"], "properties": {
  "json": {"anyOf": [{"type": "string"}, {"type": "object"}]}, "json_object": {"type": "boolean"},
  "regex": {"type": "string"}, "choice": {"type": "array", "items": {"type": "string"}}, "grammar": {"type": "string"}}})";

ApiError refusal(std::string_view param, std::string_view rest) {
  return bad_request(std::string(param), fmt::format("'{}{}", param, rest));
}

bool is_neutral(const RequestJson& value) {
  return value.is_null() || value == RequestJson(false);
}

GrammarRequest make_grammar(std::string_view param, GrammarKind kind, std::string text) {
  return {.spec = {.kind = kind, .text = std::move(text)}, .param = std::string(param)};
}

GrammarRequest any_object(std::string_view param) {
  return make_grammar(param, GrammarKind::kJsonSchema, R"({"type":"object"})");
}

MaybeError read_json_schema(const RequestJson& format, std::optional<GrammarRequest>& grammar) {
  const auto entry = format.find("json_schema");
  if (entry == format.end() || !entry->is_object())
    return refusal(kResponseFormat, ".json_schema': expected an object with a 'schema'");
  for (const auto& [name, value] : entry->items()) {
    if (name != "name" && name != "description" && name != "strict" && name != "schema")
      return refusal(kResponseFormat, fmt::format(".json_schema': '{}' is not supported", name));
  }
  const auto schema = entry->find("schema");
  if (schema == entry->end() || !(schema->is_object() || schema->is_boolean()))
    return refusal(kResponseFormat, ".json_schema.schema': expected a JSON Schema");
  grammar = make_grammar(kResponseFormat, GrammarKind::kJsonSchema, to_json_text(*schema));
  return {};
}

MaybeError read_response_format(const RequestJson& format, std::optional<GrammarRequest>& grammar) {
  if (is_neutral(format) || format.empty()) return {};
  const auto type = format.is_object() ? format.find("type") : format.end();
  if (type == format.end() || !type->is_string())
    return refusal(kResponseFormat, "': expected an object with a 'type'");
  const auto& name = type->get_ref<const std::string&>();
  if (name == "text") return {};
  if (name == "json_schema") return read_json_schema(format, grammar);
  if (name != "json_object") {
    return refusal(
        kResponseFormat,
        fmt::format(".type': expected one of text, json_object and json_schema, got '{}'", name));
  }
  grammar = any_object(kResponseFormat);
  return {};
}

MaybeError read_string(const RequestJson& value, std::string_view name, GrammarKind kind,
                       std::optional<GrammarRequest>& grammar) {
  if (!value.is_string())
    return refusal(kStructuredOutputs, fmt::format(".{}': expected a string", name));
  grammar = make_grammar(kStructuredOutputs, kind, value.get<std::string>());
  return {};
}

MaybeError read_choice(const RequestJson& value, std::optional<GrammarRequest>& grammar) {
  const bool is_list =
      value.is_array() && std::all_of(value.begin(), value.end(),
                                      [](const RequestJson& item) { return item.is_string(); });
  if (!is_list) return refusal(kStructuredOutputs, ".choice': expected a list of strings");
  grammar = make_grammar(kStructuredOutputs, GrammarKind::kChoice, to_json_text(value));
  return {};
}

MaybeError read_constraint(const std::string& name, const RequestJson& value,
                           std::optional<GrammarRequest>& grammar) {
  if (name == "regex") return read_string(value, name, GrammarKind::kRegex, grammar);
  if (name == "grammar") return read_string(value, name, GrammarKind::kContextFree, grammar);
  if (name == "choice") return read_choice(value, grammar);
  if (name == "json_object" && value.is_boolean()) {
    grammar = any_object(kStructuredOutputs);
    return {};
  }
  if (name == "json" && (value.is_object() || value.is_boolean())) {
    grammar = make_grammar(kStructuredOutputs, GrammarKind::kJsonSchema, to_json_text(value));
    return {};
  }
  if (name == "json") return read_string(value, name, GrammarKind::kJsonSchema, grammar);
  return refusal(kStructuredOutputs, fmt::format("': '{}' is not supported", name));
}

MaybeError read_structured_outputs(const RequestJson& fields,
                                   std::optional<GrammarRequest>& grammar) {
  if (is_neutral(fields) || fields.empty()) return {};
  if (!fields.is_object()) return refusal(kStructuredOutputs, "': expected an object");
  int num_asked = 0;
  for (const auto& [name, value] : fields.items()) {
    if (value.is_null() || (is_neutral(value) && name != "json")) continue;
    ++num_asked;
    if (auto error = read_constraint(name, value, grammar)) return error;
  }
  if (num_asked <= 1) return {};
  return refusal(kStructuredOutputs,
                 "': expected one of json, json_object, regex, choice and grammar, got more");
}

using ReadGrammar = MaybeError (*)(const RequestJson&, std::optional<GrammarRequest>&);

// A field that asks for a grammar by itself; at most one does.
Field grammar_field(std::string_view name, ReadGrammar read, std::optional<GrammarRequest>& grammar,
                    std::string_view schema) {
  const auto read_alone = [=, &grammar](const RequestJson& value) -> MaybeError {
    std::optional<GrammarRequest> asked;
    if (auto error = read(value, asked)) return error;
    if (!asked) return {};
    if (grammar)
      return refusal(name, fmt::format("' and '{}' must not both be there", grammar->param));
    grammar = std::move(asked);
    return {};
  };
  return {.name = name, .target = CustomField{read_alone, schema}};
}

}  // namespace

std::vector<Field> grammar_field_table(std::optional<GrammarRequest>& grammar) {
  Field format =
      grammar_field(kResponseFormat, read_response_format, grammar, kResponseFormatSchema);
  format.description = "Holds the answer to JSON, or to a JSON Schema.";
  Field structured =
      grammar_field(kStructuredOutputs, read_structured_outputs, grammar, kStructuredOutputsSchema);
  structured.description =
      "Holds the answer to one of: a JSON Schema, a regular expression, a choice of texts, a "
      "grammar as Lark or GBNF.";
  return {std::move(format), std::move(structured)};
}

}  // namespace pagoda
