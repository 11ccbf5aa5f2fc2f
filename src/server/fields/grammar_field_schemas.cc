#include "server/fields/grammar_field_schemas.h"

#include <map>
#include <string>
#include <vector>

#include "core/json.h"
#include "server/fields/field_reader.h"
#include "server/fields/grammar_fields.h"

namespace pagoda {
namespace {

using nlohmann::json;

// The bound of a grammar's length in the schemas. Requests are checked by bytes instead
// (text/rust/text/src/grammar.rs).
constexpr std::size_t kMaxGrammarChars = 1 << 20;

// Returns the schema of the neutral values, which ask for nothing.
json nothing() {
  return {{"title", "NoGrammar"}, {"enum", {nullptr, false, ""}}};
}

// Does the same for a regular expression, where an empty text asks for something.
json no_regex() {
  return {{"enum", {nullptr, false}}};
}

json any_of(std::initializer_list<json> schemas) {
  return {{"anyOf", schemas}};
}

// Returns the schema of an object with these properties and no others.
json closed(json properties, json required = json::array()) {
  json schema = {
      {"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
  if (!required.empty()) schema["required"] = std::move(required);
  return schema;
}

// Does the same, but accepts other properties with neutral values.
json closed_but_for_nothing(json properties, json required) {
  json schema = closed(std::move(properties), std::move(required));
  schema["additionalProperties"] = nothing();
  return schema;
}

json text() {
  return {{"type", "string"}, {"maxLength", kMaxGrammarChars}};
}

// Returns a schema of JSON Schemas that have a known `type` or are empty. It leaves out other
// keywords, because no schema can say which of them are supported.
json type_schemas() {
  const json types = {"object", "array", "string", "number", "integer", "boolean", "null"};
  json schema = closed({{"type", {{"enum", types}}}});
  schema["title"] = "TypeSchema";
  schema["description"] = "A JSON Schema; its other keywords are taken too.";
  return schema;
}

json schemas() {
  return any_of({{{"const", true}}, type_schemas()});
}

json regexes() {
  return {{"title", "Regex"},  {"type", "string"},
          {"minLength", 1},    {"maxLength", kMaxGrammarChars},
          {"format", "regex"}, {"description", "In Rust's syntax."}};
}

json grammars() {
  return {{"title", "Grammar"},
          {"type", "string"},
          {"pattern", R"re(^root ::= "[a-z]{1,16}"( \| "[a-z]{1,16}"){0,8}$)re"},
          {"description",
           "A grammar as GBNF or Lark. The pattern is that of a choice; any other grammar is taken "
           "too."}};
}

json choices() {
  const json choice = {{"type", "string"}, {"minLength", 1}, {"maxLength", kMaxGrammarChars}};
  return {{"title", "GrammarChoices"},
          {"type", "array"},
          {"items", choice},
          {"minItems", 1},
          {"maxItems", kMaxGrammarChoices}};
}

json white_spaces() {
  return {{"title", "WhiteSpace"},
          {"type", "string"},
          {"pattern", R"(^(\[[ \t\r\n]{1,4}\][*?]?|[ \t\r\n]{1,16})$)"},
          {"description", "A regular expression that matches white space; others are taken too."}};
}

// Returns the schema of a response_format that asks for nothing.
json plain_formats() {
  json schema = any_of({{{"enum", {nullptr, false, "", json::object(), json::array()}}},
                        closed_but_for_nothing({{"type", {{"const", "text"}}}}, {"type"})});
  schema["title"] = "NoResponseFormat";
  return schema;
}

json response_format() {
  const auto kind = [](const char* title, const char* name, const char* value, json value_schema) {
    json schema = closed_but_for_nothing(
        {{"type", {{"const", name}}}, {value, std::move(value_schema)}}, {"type"});
    schema["title"] = title;
    return schema;
  };
  json object_schemas = type_schemas();
  object_schemas["properties"]["type"] = {{"const", "object"}};
  object_schemas["title"] = "ObjectTypeSchema";
  json text_or_null = text();
  text_or_null["type"] = {"string", "null"};
  const json named = closed({{"name", text_or_null},
                             {"description", text_or_null},
                             {"strict", {{"type", {"boolean", "null"}}}},
                             {"schema", schemas()}},
                            {"schema"});
  json within = kind("JsonSchemaFormat", "json_schema", "json_schema", named);
  within["required"].push_back("json_schema");
  json at_top = named;
  at_top["title"] = "FlatJsonSchemaFormat";
  at_top["properties"]["type"] = {{"const", "json_schema"}};
  at_top["properties"]["json_schema"] = nothing();
  at_top["required"].push_back("type");
  return any_of({plain_formats(),
                 kind("JsonObjectFormat", "json_object", "schema",
                      any_of({nothing(), std::move(object_schemas)})),
                 std::move(within), std::move(at_top)});
}

// Returns the schema of a structured_outputs object in which only the property `asked` asks for
// something. `schema` describes that property.
json structured_outputs_of(const char* asked, const json& schema) {
  const json flag = {{"enum", {nullptr, false, "", true}}};
  json properties = {{"json", {{"type", "null"}}},
                     {"json_object", nothing()},
                     {"regex", no_regex()},
                     {"choice", nothing()},
                     {"grammar", nothing()},
                     {"disable_any_whitespace", flag},
                     {"disable_additional_properties", flag},
                     {"disable_fallback", flag},
                     {"whitespace_pattern", any_of({nothing(), white_spaces()})}};
  json required = json::array();
  if (asked != nullptr) {
    properties[asked] = schema;
    required.push_back(asked);
  }
  return closed_but_for_nothing(std::move(properties), std::move(required));
}

json plain_outputs() {
  json schema =
      any_of({{{"enum", {nullptr, false, "", json::array()}}}, structured_outputs_of(nullptr, {})});
  schema["title"] = "NoStructuredOutputs";
  return schema;
}

// Returns a schema that forbids setting white space by both fields at once.
json says_white_space_once(const char* one, const char* other) {
  return any_of({{{"properties", {{one, nothing()}}}}, {{"properties", {{other, nothing()}}}}});
}

json structured_outputs() {
  json schema =
      any_of({plain_outputs(), structured_outputs_of("json", schemas()),
              structured_outputs_of("json_object", {{"const", true}}),
              structured_outputs_of("regex", regexes()), structured_outputs_of("choice", choices()),
              structured_outputs_of("grammar", grammars())});
  schema["title"] = "StructuredOutputs";
  add_rule(schema, says_white_space_once("whitespace_pattern", "disable_any_whitespace"));
  return schema;
}

struct FieldSchemas {
  json all;    // values that the field accepts
  json plain;  // values that ask for no grammar
};

std::map<std::string_view, FieldSchemas> make_schemas() {
  const auto asking = [](json schema) {
    return FieldSchemas{any_of({nothing(), std::move(schema)}), nothing()};
  };
  return {{"response_format", {response_format(), plain_formats()}},
          {"structured_outputs", {structured_outputs(), plain_outputs()}},
          {"json_schema", asking(schemas())},
          {"format", asking(any_of({{{"const", "json"}}, type_schemas()}))},
          {"grammar", asking(grammars())},
          {"ebnf", asking(grammars())},
          {"regex", {any_of({no_regex(), regexes()}), no_regex()}},
          {"guided_json", asking(schemas())},
          {"guided_regex", {any_of({no_regex(), regexes()}), no_regex()}},
          {"guided_choice", asking(choices())},
          {"guided_grammar", asking(grammars())},
          {"guided_whitespace_pattern", {any_of({nothing(), white_spaces()}), json::object()}}};
}

const std::map<std::string_view, FieldSchemas>& schemas_by_name() {
  static const std::map<std::string_view, FieldSchemas> schemas = make_schemas();
  return schemas;
}

}  // namespace

std::string_view grammar_field_schema(std::string_view name) {
  static const std::map<std::string_view, std::string> texts = [] {
    std::map<std::string_view, std::string> made;
    for (const auto& [field, schemas] : schemas_by_name()) made[field] = json_text(schemas.all);
    return made;
  }();
  return texts.at(name);
}

std::string_view flat_format_schema() {
  static const std::string text = json_text(
      closed({{"type", {{"const", "json_schema"}}}, {"schema", schemas()}}, {"type", "schema"}));
  return text;
}

void describe_grammars_together(json& schema, const json& other) {
  const json without = {
      {"properties", {{"whitespace_pattern", nothing()}, {"disable_any_whitespace", nothing()}}}};
  add_rule(schema, any_of({{{"properties", {{"guided_whitespace_pattern", nothing()}}}},
                           {{"properties", {{"structured_outputs", without}}}}}));
  std::vector<json> plain;
  if (!other.is_null()) plain.push_back(other);
  for (const auto& [name, schemas] : schemas_by_name()) {
    if (!schemas.plain.empty()) plain.push_back({{"properties", {{name, schemas.plain}}}});
  }
  for (std::size_t i = 0; i < plain.size(); ++i) {
    for (std::size_t j = i + 1; j < plain.size(); ++j)
      add_rule(schema, any_of({plain[i], plain[j]}));
  }
}

}  // namespace pagoda
