#include "server/fields/custom_tools.h"

#include <fmt/format.h>

#include "answer/tool_definition.h"
#include "core/json.h"
#include "server/fields/field_reader.h"
#include "text/grammar.h"

namespace pagoda {
namespace {

// The bound of a grammar in the schema: as many characters fit into kMaxGrammarBytes in any case.
constexpr std::size_t kMaxDefinitionChars = kMaxGrammarBytes / 4;

// Describes the input to the model, and sets the regular expression that holds it.
std::optional<ApiError> read_format(std::string_view place, const RequestJson& format,
                                    std::string& description, std::string& regex) {
  const auto wrong = [&](std::string_view at, std::string_view expected) {
    return bad_request("tools", fmt::format("'{}.format{}': expected {}", place, at, expected));
  };
  description = "The tool's input, a plain text.";
  if (format.is_null()) return {};
  if (!format.is_object()) return wrong("", "an object with a 'type'");
  const RequestJson& type = value_of(format, "type");
  if (type == RequestJson("text")) return {};
  if (type != RequestJson("grammar"))
    return wrong(".type", fmt::format("text or grammar, got {}", json_text(type)));
  // Chats have the grammar in an object of its own.
  const RequestJson& within = value_of(format, "grammar");
  const std::string at = within.is_null() ? "" : ".grammar";
  const RequestJson& grammar = within.is_null() ? format : within;
  if (!grammar.is_object()) return wrong(at, "an object with 'syntax' and 'definition'");
  const RequestJson& syntax = value_of(grammar, "syntax");
  const bool is_regex = syntax == RequestJson("regex");
  if (!is_regex && syntax != RequestJson("lark"))
    return wrong(at + ".syntax", fmt::format("lark or regex, got {}", json_text(syntax)));
  const RequestJson& definition = value_of(grammar, "definition");
  if (!definition.is_string() || definition == RequestJson("") ||
      definition.get_ref<const std::string&>().size() > kMaxGrammarBytes) {
    return wrong(at + ".definition",
                 fmt::format("a grammar of 1 to {} bytes, as a string", kMaxGrammarBytes));
  }
  const auto& text = definition.get_ref<const std::string&>();
  description +=
      is_regex ? " It matches this regular expression: " : " It follows this Lark grammar:\n";
  description += text;
  if (is_regex) regex = text;
  return {};
}

}  // namespace

std::optional<ApiError> read_custom_tool(std::string_view place, const RequestJson& custom,
                                         CustomTool& tool) {
  std::string description;
  if (auto error = read_format(place, value_of(custom, "format"), description, tool.regex))
    return error;
  tool.function = {{"name", value_of(custom, "name")}};
  if (const RequestJson& said = value_of(custom, "description"); !said.is_null())
    tool.function["description"] = said;
  const std::string input(kCustomInput);
  RequestJson properties = RequestJson::object();
  properties[input] = {{"type", "string"}, {"description", description}};
  tool.function["parameters"] = {{"type", "object"},
                                 {"properties", std::move(properties)},
                                 {"required", RequestJson::array({input})}};
  return {};
}

std::string_view custom_format_schema() {
  static const std::string schema = [] {
    const std::string grammar = fmt::format(
        R"({{"anyOf": [
        {{"type": "object", "required": ["syntax", "definition"], "properties": {{"syntax": {{"const": "lark"}},
          "definition": {{"type": "string", "minLength": 1, "maxLength": {}}}}}}},
        {{"type": "object", "required": ["syntax", "definition"], "properties": {{"syntax": {{"const": "regex"}},
          "definition": {{"type": "string", "pattern": "^[a-z0-9]{{1,16}}$",
            "description": "In Rust's syntax. The pattern is that of a word; other regular expressions are taken too."}}}}}}]}})",
        kMaxDefinitionChars);
    return fmt::format(
        R"({{"anyOf": [{{"type": "null"}},
        {{"type": "object", "required": ["type"], "properties": {{"type": {{"const": "text"}}}}}},
        {{"type": "object", "required": ["type", "grammar"], "properties": {{"type": {{"const": "grammar"}}, "grammar": {0}}}}},
        {{"allOf": [{0}, {{"type": "object", "required": ["type"], "properties": {{"type": {{"const": "grammar"}},
          "grammar": {{"type": "null"}}}}}}]}}]}})",
        grammar);
  }();
  return schema;
}

}  // namespace pagoda
