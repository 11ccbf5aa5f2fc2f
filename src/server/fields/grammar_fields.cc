#include "server/fields/grammar_fields.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/json.h"
#include "server/base/json_body.h"
#include "server/base/request_json.h"
#include "server/fields/grammar_field_schemas.h"

namespace pagoda {
namespace {

using MaybeError = std::optional<ApiError>;

constexpr std::string_view kStructuredOutputs = "structured_outputs";

ApiError refusal(std::string_view param, std::string_view rest) {
  return bad_request(std::string(param), fmt::format("'{}{}", param, rest));
}

bool is_neutral(const RequestJson& value) {
  return value.is_null() || value == RequestJson(false) || value == RequestJson("");
}

// Returns whether the property or field `name` asks for something. An empty regular expression does,
// and is refused: only the empty answer would match it.
bool is_asked(std::string_view name, const RequestJson& value) {
  if (name.ends_with("regex") && value == RequestJson("")) return true;
  return name == "json" ? !value.is_null() : !is_neutral(value);
}

// A place in a request: the field `param`, and the path below it (such as ".regex", or "").
struct Place {
  std::string_view param;
  std::string_view below;
};

MaybeError set_grammar(Place place, GrammarKind kind, std::string text, GrammarFields& fields) {
  if (fields.grammar) {
    if (fields.grammar->param == place.param)
      return refusal(place.param,
                     "': expected one of json, json_object, regex, choice and grammar, got more");
    const GrammarSpec& other = fields.grammar->spec;
    if (other.kind == kind && other.text == text) return {};
    return refusal(place.param,
                   fmt::format("' and '{}' must not both be there", fields.grammar->param));
  }
  std::string param(place.param);
  fields.grammar =
      GrammarRequest{.spec = {.kind = kind, .text = std::move(text), .asked_by = param},
                     .param = param,
                     .is_for_text = place.param == kResponseFormat};
  return {};
}

MaybeError read_any_object(Place place, GrammarFields& fields) {
  return set_grammar(place, GrammarKind::kJsonSchema, R"({"type":"object"})", fields);
}

// Reads a JSON Schema, given as JSON or as a string that holds JSON.
MaybeError read_schema(Place place, const RequestJson& value, GrammarFields& fields) {
  if (value.is_string())
    return set_grammar(place, GrammarKind::kJsonSchema, value.get<std::string>(), fields);
  if (value.is_object() || value.is_boolean())
    return set_grammar(place, GrammarKind::kJsonSchema, json_text(value), fields);
  return refusal(place.param, fmt::format("{}': expected a JSON Schema", place.below));
}

MaybeError read_text(Place place, const RequestJson& value, GrammarKind kind,
                     GrammarFields& fields) {
  if (!value.is_string())
    return refusal(place.param, fmt::format("{}': expected a string", place.below));
  return set_grammar(place, kind, value.get<std::string>(), fields);
}

MaybeError read_choice(Place place, const RequestJson& value, GrammarFields& fields) {
  const bool is_list =
      value.is_array() && std::all_of(value.begin(), value.end(),
                                      [](const RequestJson& item) { return item.is_string(); });
  if (!is_list)
    return refusal(place.param, fmt::format("{}': expected a list of strings", place.below));
  if (value.size() > kMaxGrammarChoices)
    return refusal(place.param, fmt::format("{}': expected at most {} in the list, got {}",
                                            place.below, kMaxGrammarChoices, value.size()));
  return set_grammar(place, GrammarKind::kChoice, json_text(value), fields);
}

// Reads Ollama's field `format`.
MaybeError read_format(Place place, const RequestJson& value, GrammarFields& fields) {
  if (value == RequestJson("json")) return read_any_object(place, fields);
  if (value.is_object()) return read_schema(place, value, fields);
  return refusal(place.param, R"(': expected "json" or a JSON Schema)");
}

// Sets the pattern of white space; "": no white space at all.
MaybeError set_white_space(Place place, std::string pattern, GrammarFields& fields) {
  if (fields.white_space && fields.white_space->pattern != pattern) {
    return refusal(place.param,
                   fmt::format("{}': expected one pattern of white space, '{}' has another",
                               place.below, fields.white_space->param));
  }
  fields.white_space = WhiteSpaceRequest{std::move(pattern), std::string(place.param)};
  return {};
}

MaybeError read_white_space(Place place, const RequestJson& value, GrammarFields& fields) {
  if (!value.is_string())
    return refusal(place.param, fmt::format("{}': expected a string", place.below));
  return set_white_space(place, value.get<std::string>(), fields);
}

// Returns whether a format of type json_schema has its schema beside the type instead of in
// `json_schema`.
bool has_schema_at_top(const RequestJson& format) {
  return is_neutral(value_of(format, "json_schema"));
}

// Reads a schema with its name. `at`: the path of the object that holds them.
MaybeError read_named_schema(std::string_view at, const RequestJson& entry, GrammarFields& fields) {
  const auto wrong = [at](std::string_view name, std::string_view expected) {
    return refusal(kResponseFormat, fmt::format("{}.{}': expected {}", at, name, expected));
  };
  for (const auto& [name, value] : entry.items()) {
    const bool is_text = name == "name" || name == "description";
    if (!is_text && name != "strict" && name != "schema")
      return refusal(kResponseFormat, fmt::format("{}': '{}' is not supported", at, name));
    if (is_text && !value.is_string() && !value.is_null()) return wrong(name, "a string");
    if (name == "strict" && !value.is_boolean() && !value.is_null())
      return wrong(name, "true or false");
  }
  const RequestJson& schema = value_of(entry, "schema");
  if (!schema.is_object() && !schema.is_boolean()) return wrong("schema", "a JSON Schema");
  return read_schema({kResponseFormat, fmt::format("{}.schema", at)}, schema, fields);
}

MaybeError read_json_schema(const RequestJson& format, GrammarFields& fields) {
  const RequestJson& entry = value_of(format, "json_schema");
  if (!entry.is_object())
    return refusal(kResponseFormat, ".json_schema': expected an object with a 'schema'");
  return read_named_schema(".json_schema", entry, fields);
}

// Reads a response_format of type `json_object`. Its schema need not have the type "object".
MaybeError read_json_object(const RequestJson& format, GrammarFields& fields) {
  const auto schema = format.find("schema");
  if (schema == format.end() || is_neutral(*schema))
    return read_any_object({kResponseFormat, ""}, fields);
  if (!schema->is_object())
    return refusal(kResponseFormat, ".schema': expected an object, a JSON Schema");
  RequestJson object = *schema;
  if (!object.contains("type")) object["type"] = "object";
  return read_schema({kResponseFormat, ".schema"}, object, fields);
}

MaybeError read_response_format(Place, const RequestJson& format, GrammarFields& fields) {
  if (format.empty()) return {};
  const auto type = format.is_object() ? format.find("type") : format.end();
  if (type == format.end() || !type->is_string())
    return refusal(kResponseFormat, "': expected an object with a 'type'");
  const auto& name = type->get_ref<const std::string&>();
  if (name != "text" && name != "json_object" && name != "json_schema") {
    return refusal(
        kResponseFormat,
        fmt::format(".type': expected one of text, json_object and json_schema, got '{}'", name));
  }
  if (name == "json_schema" && has_schema_at_top(format)) {
    RequestJson entry = format;
    entry.erase("type");
    entry.erase("json_schema");
    return read_named_schema("", entry, fields);
  }
  const std::string_view own =
      name == "json_object" ? "schema" : (name == "json_schema" ? "json_schema" : "type");
  for (const auto& [key, value] : format.items()) {
    if (key != "type" && key != own && !is_neutral(value))
      return refusal(kResponseFormat,
                     fmt::format("': '{}' is not supported beside type '{}'", key, name));
  }
  if (name == "text") return {};
  return name == "json_object" ? read_json_object(format, fields)
                               : read_json_schema(format, fields);
}

MaybeError read_structured_output(const std::string& name, const RequestJson& value,
                                  GrammarFields& fields) {
  const std::string below = "." + name;
  const Place place{kStructuredOutputs, below};
  if (name == "json") return read_schema(place, value, fields);
  if (name == "regex") return read_text(place, value, GrammarKind::kRegex, fields);
  if (name == "grammar") return read_text(place, value, GrammarKind::kContextFree, fields);
  if (name == "choice") return read_choice(place, value, fields);
  if (name == "whitespace_pattern") return read_white_space(place, value, fields);
  if (!value.is_boolean() && (name == "json_object" || name.starts_with("disable_")))
    return refusal(kStructuredOutputs, fmt::format("{}': expected true or false", below));
  if (name == "json_object") return read_any_object(place, fields);
  if (name == "disable_any_whitespace") return set_white_space(place, "", fields);
  // Both are always so: there is no fallback, and objects that list properties allow no others.
  if (name == "disable_fallback" || name == "disable_additional_properties") return {};
  return refusal(kStructuredOutputs, fmt::format("': '{}' is not supported", name));
}

// Reads vLLM's current field `structured_outputs`.
MaybeError read_structured_outputs(Place, const RequestJson& outputs, GrammarFields& fields) {
  if (!outputs.is_object() && !outputs.empty())
    return refusal(kStructuredOutputs, "': expected an object");
  for (const auto& [name, value] : outputs.items()) {
    if (!is_asked(name, value)) continue;
    if (auto error = read_structured_output(name, value, fields)) return error;
  }
  return {};
}

template <GrammarKind kind>
MaybeError read_field_text(Place place, const RequestJson& value, GrammarFields& fields) {
  return read_text(place, value, kind, fields);
}

// A field that asks for a grammar, or sets a property of one.
struct GrammarField {
  std::string_view name;
  MaybeError (*read)(Place, const RequestJson&, GrammarFields&);
  std::string_view from;  // the server that has this name; empty: OpenAI
  std::string_view description;
};

constexpr GrammarField kGrammarFields[] = {
    {kResponseFormat, read_response_format, "", "Holds the answer to JSON, or to a JSON Schema."},
    {kStructuredOutputs, read_structured_outputs, "vLLM",
     "Holds the answer to one of: a JSON Schema, a regular expression, a choice of texts, a "
     "grammar as Lark or GBNF. Without white space between JSON's tokens, or with white space by a "
     "pattern, where it says so."},
    {"json_schema", read_schema, "llama.cpp", "Holds the answer to a JSON Schema; SGLang's too."},
    {"format", read_format, "Ollama", R"(Holds the answer to "json", or to a JSON Schema.)"},
    {"grammar", read_field_text<GrammarKind::kContextFree>, "llama.cpp",
     "Holds the answer to a grammar as GBNF or Lark."},
    {"ebnf", read_field_text<GrammarKind::kContextFree>, "SGLang",
     "Holds the answer to a grammar as GBNF or Lark."},
    {"regex", read_field_text<GrammarKind::kRegex>, "SGLang",
     "Holds the answer to a regular expression."},
    {"guided_json", read_schema, "vLLM", "Older name of structured_outputs.json."},
    {"guided_regex", read_field_text<GrammarKind::kRegex>, "vLLM",
     "Older name of structured_outputs.regex."},
    {"guided_choice", read_choice, "vLLM", "Older name of structured_outputs.choice."},
    {"guided_grammar", read_field_text<GrammarKind::kContextFree>, "vLLM",
     "Older name of structured_outputs.grammar."},
    {"guided_whitespace_pattern", read_white_space, "vLLM",
     "Older name of structured_outputs.whitespace_pattern."},
};

}  // namespace

std::optional<ApiError> read_format_at(const FormatPlace& place, const RequestJson& format,
                                       GrammarFields& fields) {
  const std::string param(place.param);
  if (!format.is_object())
    return bad_request(param, fmt::format("'{}': expected an object", place.path));
  GrammarFields own;
  if (auto error = read_response_format(Place{}, format, own)) {
    if (const auto begin = fmt::format("'{}", kResponseFormat); error->message.starts_with(begin))
      error->message.replace(0, begin.size(), fmt::format("'{}", place.path));
    error->param = param;
    return error;
  }
  if (!own.grammar) return {};
  if (fields.grammar) {
    return bad_request(param, fmt::format("'{}' and '{}' must not both be there", place.path,
                                          fields.grammar->spec.asked_by));
  }
  own.grammar->param = param;
  own.grammar->spec.asked_by = place.path;
  fields.grammar = std::move(own.grammar);
  return {};
}

std::vector<Field> grammar_field_table(GrammarFields& fields) {
  std::vector<Field> table;
  for (const GrammarField& field : kGrammarFields) {
    const auto read = [&field, &fields](std::string_view, const RequestJson& value) -> MaybeError {
      if (!is_asked(field.name, value)) return {};
      return field.read({field.name, ""}, value, fields);
    };
    table.push_back({.name = field.name,
                     .target = CustomField{read, grammar_field_schema(field.name)},
                     .description = field.description,
                     .from = field.from});
  }
  // There is only one such backend here.
  table.push_back({.name = "guided_decoding_backend", .target = IgnoredField{}, .from = "vLLM"});
  return table;
}

}  // namespace pagoda
