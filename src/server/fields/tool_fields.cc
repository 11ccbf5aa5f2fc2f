#include "server/fields/tool_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/json.h"
#include "server/base/json_body.h"
#include "server/base/request_json.h"
#include "server/fields/custom_tools.h"

namespace pagoda {
namespace {

using MaybeError = std::optional<ApiError>;

// The characters of a function's name: OpenAI's, and those with which MCP clients join two names.
constexpr std::string_view kNamePattern = "^[A-Za-z0-9_.:/-]+$";

constexpr std::string_view kNameProperties =
    R"("name": {"type": "string", "minLength": 1, "maxLength": 256, "pattern": "^[A-Za-z0-9_.:/-]+$"},
       "description": {"type": ["string", "null"], "maxLength": 16777216})";
constexpr std::string_view kParameterProperties =
    R"("parameters": {"type": ["object", "null"]}, "strict": {"type": ["boolean", "null"]})";

// Returns the schema of a tool of a type, which has `properties` beside the type.
std::string tool_schema(std::string_view title, std::string_view type, std::string_view required,
                        std::string_view properties) {
  return fmt::format(
      R"({{"title": "{}", "type": "object", "required": ["type", "{}"], "properties": {{"type": {{"const": "{}"}}, {}}}}})",
      title, required, type, properties);
}

// Returns the property of that type that holds a tool's definition.
std::string definition_schema(std::string_view title, std::string_view type,
                              std::string_view properties) {
  return fmt::format(
      R"("{}": {{"title": "{}", "type": "object", "required": ["name"], "properties": {{{}}}}})",
      type, title, properties);
}

std::string make_tools_schema(ToolShape shape) {
  std::string function = fmt::format("{}, {}", kNameProperties, kParameterProperties);
  std::string custom = fmt::format("{}, \"format\": {}", kNameProperties, custom_format_schema());
  if (shape == ToolShape::kNested) {
    function = definition_schema("FunctionDefinition", "function", function);
    custom = definition_schema("CustomDefinition", "custom", custom);
    function = tool_schema("FunctionTool", "function", "function", function);
    custom = tool_schema("CustomTool", "custom", "custom", custom);
  } else {
    function = tool_schema("FlatFunctionTool", "function", "name", function);
    custom = tool_schema("FlatCustomTool", "custom", "name", custom);
  }
  return fmt::format(R"({{"type": "array", "maxItems": 1024, "items": {{"anyOf": [{}, {}]}}}})",
                     function, custom);
}

std::string_view tools_schema(ToolShape shape) {
  static const std::string nested = make_tools_schema(ToolShape::kNested);
  static const std::string flat = make_tools_schema(ToolShape::kFlat);
  return shape == ToolShape::kNested ? nested : flat;
}

// Returns the schema of tool_choice. It covers less than is accepted: calls that must be made need
// a grammar with rules of its own, and no schema knows a request's functions.
std::string_view tool_choice_schema(ToolShape shape) {
  constexpr std::string_view kModeAndTools =
      R"("mode": {"const": "auto"}, "tools": {"type": "array", "items": {}, "maxItems": 0})";
  constexpr std::string_view kChoices =
      R"({{"anyOf": [{{"enum": ["none", "auto"]}}, {{"type": "object", "required": ["type", {}], "properties": {{
          "type": {{"const": "allowed_tools"}}, {}}}}}]}})";
  static const std::string flat = fmt::format(kChoices, R"("mode", "tools")", kModeAndTools);
  static const std::string nested = fmt::format(
      kChoices, R"("allowed_tools")",
      fmt::format(
          R"("allowed_tools": {{"type": "object", "required": ["mode", "tools"], "properties": {{{}}}}})",
          kModeAndTools));
  return shape == ToolShape::kNested ? nested : flat;
}

ApiError tool_error(std::size_t index, std::string_view rest) {
  return bad_request("tools", fmt::format("'tools[{}]{}", index, rest));
}

bool is_name_character(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
         std::string_view("_.:/-").find(c) != std::string_view::npos;
}

// Reads a tool's function. `at`: its path in the tool, ".function" or "".
MaybeError read_function(std::size_t index, std::string_view at, const RequestJson& function,
                         ToolDefinition& tool) {
  const auto wrong = [&](std::string_view key, std::string_view expected) {
    return tool_error(index, fmt::format("{}.{}': expected {}", at, key, expected));
  };
  const RequestJson& name = value_of(function, "name");
  if (!name.is_string()) return wrong("name", "a string");
  tool.name = name.get<std::string>();
  const bool is_name = !tool.name.empty() && tool.name.size() <= kMaxFunctionNameChars &&
                       std::all_of(tool.name.begin(), tool.name.end(), is_name_character);
  if (!is_name) {
    return wrong("name",
                 fmt::format("1 to {} characters of {}", kMaxFunctionNameChars, kNamePattern));
  }
  const RequestJson& description = value_of(function, "description");
  if (!description.is_null() && !description.is_string()) return wrong("description", "a string");
  const RequestJson& parameters = value_of(function, "parameters");
  if (!parameters.is_null() && !parameters.is_object())
    return wrong("parameters", "an object, a JSON Schema");
  if (parameters.is_object()) tool.parameters_json = json_text(parameters);
  const RequestJson& strict = value_of(function, "strict");
  if (!strict.is_null() && !strict.is_boolean()) return wrong("strict", "true or false");
  tool.is_strict = strict == RequestJson(true);
  return {};
}

RequestJson without_type(RequestJson flat) {
  flat.erase("type");
  return flat;
}

// Reads a tool, and appends the form in which templates show it to `shown`.
MaybeError read_tool(std::size_t index, const RequestJson& value, ToolShape shape, ToolUse& use,
                     RequestJson& shown) {
  const RequestJson& type = value_of(value, "type");
  const bool is_custom = type == RequestJson("custom");
  if (!is_custom && type != RequestJson("function")) {
    return tool_error(index,
                      fmt::format(".type': expected function or custom, got {}", json_text(type)));
  }
  const bool is_flat = shape == ToolShape::kFlat;
  const std::string_view key = is_custom ? "custom" : "function";
  const std::string at = is_flat ? "" : fmt::format(".{}", key);
  const RequestJson& said = is_flat ? value : value_of(value, key);
  if (!said.is_object()) return tool_error(index, at + "': expected an object");
  ToolDefinition& tool = use.tools.emplace_back();
  if (!is_custom) {
    if (auto error = read_function(index, at, said, tool)) return error;
    shown.push_back(is_flat ? RequestJson{{"type", "function"}, {"function", without_type(value)}}
                            : value);
    return {};
  }
  CustomTool custom;
  if (auto error = read_custom_tool(fmt::format("tools[{}]{}", index, at), said, custom))
    return error;
  if (auto error = read_function(index, at, custom.function, tool)) return error;
  tool.is_custom = true;
  tool.is_strict = true;  // arguments without an input could not be told
  tool.input_regex = std::move(custom.regex);
  shown.push_back({{"type", "function"}, {"function", std::move(custom.function)}});
  return {};
}

}  // namespace

bool is_hosted_type(const RequestJson& type) {
  constexpr std::string_view kTypes[] = {
      "apply_patch", "code_interpreter",          "computer",    "computer_use_preview",
      "file_search", "image_generation",          "local_shell", "mcp",
      "namespace",   "programmatic_tool_calling", "shell",       "tool_search"};
  // Its newer versions have names with a date.
  constexpr std::string_view kSearch = "web_search";
  if (!type.is_string()) return false;
  const auto& name = type.get_ref<const std::string&>();
  return name.starts_with(kSearch) ||
         std::find(std::begin(kTypes), std::end(kTypes), name) != std::end(kTypes);
}

namespace {

// Returns whether a tool of a list is a function, or custom.
bool has_served_tool(const RequestJson& tools) {
  return std::any_of(tools.begin(), tools.end(), [](const RequestJson& tool) {
    if (!tool.is_object()) return false;
    const RequestJson& type = value_of(tool, "type");
    return type == RequestJson("function") || type == RequestJson("custom");
  });
}

}  // namespace

std::optional<ApiError> read_tools(const RequestJson& value, ToolShape shape, ToolUse& use) {
  if (!value.is_array()) return wrong_type("tools", "a list of tools", value);
  if (value.size() > kMaxTools) {
    return bad_request("tools", fmt::format("'tools': expected at most {} tools, got {}", kMaxTools,
                                            value.size()));
  }
  const bool passes_over = shape == ToolShape::kFlat && has_served_tool(value);
  RequestJson tools = RequestJson::array();
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (!value[i].is_object())
      return tool_error(i, fmt::format("': expected an object, got {}", type_in_words(value[i])));
    if (passes_over && is_hosted_type(value_of(value[i], "type"))) continue;
    if (auto error = read_tool(i, value[i], shape, use, tools)) return error;
  }
  if (!tools.empty()) use.tools_json = json_text(tools);
  return {};
}

namespace {

ApiError choice_without_tools() {
  return bad_request("tool_choice", "'tool_choice' needs 'tools'", "missing_required_parameter");
}

std::string_view example_of(ToolShape shape) {
  return shape == ToolShape::kFlat ? R"({"type": "function", "name": ...})"
                                   : R"({"type": "function", "function": {"name": ...}})";
}

// Returns the tool's name in a value of example_of()'s form, where custom tools have their type;
// nullopt for other values.
std::optional<std::string> named_tool(const RequestJson& value, ToolShape shape) {
  if (!value.is_object()) return {};
  const bool is_custom = value_of(value, "type") == RequestJson("custom");
  if (!is_custom && value_of(value, "type") != RequestJson("function")) return {};
  const char* key = is_custom ? "custom" : "function";
  const RequestJson& tool = shape == ToolShape::kFlat ? value : value_of(value, key);
  if (!tool.is_object() || !value_of(tool, "name").is_string()) return {};
  return value_of(tool, "name").get<std::string>();
}

// Reads a choice {"mode": ..., "tools": [...]}. `at`: its path in tool_choice. The request's tools
// have been read.
MaybeError read_allowed(const RequestJson& choice, std::string_view at, ToolShape shape,
                        ToolUse& use) {
  const auto wrong = [at](std::string_view key, std::string_view expected) {
    return bad_request("tool_choice",
                       fmt::format("'tool_choice{}{}': expected {}", at, key, expected));
  };
  if (!choice.is_object()) return wrong("", "an object with 'mode' and 'tools'");
  const RequestJson& mode = value_of(choice, "mode");
  const bool must_call = mode == RequestJson("required");
  if (!must_call && mode != RequestJson("auto")) return wrong(".mode", "auto or required");
  const RequestJson& tools = value_of(choice, "tools");
  if (!tools.is_array() || tools.size() > kMaxTools)
    return wrong(".tools", fmt::format("a list of at most {} functions", kMaxTools));
  if (must_call && tools.empty()) return wrong(".tools", "at least one function");
  for (std::size_t i = 0; i < tools.size(); ++i) {
    auto name = named_tool(tools[i], shape);
    if (!name)
      return wrong(fmt::format(".tools[{}]", i),
                   fmt::format("a function as {}", example_of(shape)));
    use.allowed.push_back(*std::move(name));
  }
  if (use.tools.empty()) return choice_without_tools();
  use.mode = must_call ? ToolMode::kRequired : ToolMode::kAuto;
  if (tools.empty()) use.mode = ToolMode::kNone;
  return {};
}

MaybeError read_tool_choice(const RequestJson& value, ToolShape shape, ToolUse& use) {
  if (value == RequestJson("none")) {
    use.mode = ToolMode::kNone;
  } else if (value == RequestJson("auto")) {
    use.mode = ToolMode::kAuto;
  } else if (value == RequestJson("required")) {
    use.mode = ToolMode::kRequired;
  } else if (auto name = named_tool(value, shape)) {
    use.mode = ToolMode::kRequired;
    use.function = *std::move(name);
  } else if (value.is_object() && value_of(value, "type") == RequestJson("allowed_tools")) {
    return shape == ToolShape::kFlat
               ? read_allowed(value, "", shape, use)
               : read_allowed(value_of(value, "allowed_tools"), ".allowed_tools", shape, use);
  } else {
    return bad_request(
        "tool_choice",
        fmt::format(
            "'tool_choice': expected none, auto, required, allowed_tools, or a function as {}",
            example_of(shape)));
  }
  return {};
}

// Reads OpenAI's older `functions`, which are tools without a type.
MaybeError read_functions(const RequestJson& value, ToolUse& use) {
  if (!value.is_array()) return wrong_type("functions", "a list of functions", value);
  if (value.empty()) return {};
  if (!use.tools.empty())
    return bad_request("functions", "'functions' and 'tools' must not both be there");
  RequestJson tools = value;
  for (RequestJson& tool : tools) {
    if (tool.is_object()) tool["type"] = "function";
  }
  use.are_functions = true;
  use.has_parallel_calls = false;  // an answer has a place for one call
  auto error = read_tools(tools, ToolShape::kFlat, use);
  if (!error) return {};
  error->param = "functions";
  constexpr std::string_view kPlace = "'tools";
  if (error->message.starts_with(kPlace)) error->message.replace(0, kPlace.size(), "'functions");
  return error;
}

// Reads OpenAI's older `function_call`: a mode, or the function that must be called.
MaybeError read_function_call(const RequestJson& value, ToolUse& use) {
  if (value == RequestJson("none")) {
    use.mode = ToolMode::kNone;
  } else if (value == RequestJson("auto")) {
    use.mode = ToolMode::kAuto;
  } else if (value.is_object() && value_of(value, "name").is_string()) {
    if (!use.are_functions) {
      return bad_request("function_call", "'function_call' needs 'functions'",
                         "missing_required_parameter");
    }
    use.mode = ToolMode::kRequired;
    use.function = value_of(value, "name").get<std::string>();
  } else {
    return bad_request("function_call",
                       R"('function_call': expected none, auto, or a function as {"name": ...})");
  }
  return {};
}

// Adds OpenAI's older fields. The table reads `tools` before them.
void add_function_fields(ToolUse& use, std::vector<Field>& table) {
  static const std::string schema = fmt::format(
      R"({{"type": "array", "maxItems": {}, "items": {{"type": "object", "required": ["name"],
          "properties": {{{}, {}}}}}}})",
      kMaxTools, kNameProperties, kParameterProperties);
  table.push_back(custom_field("functions", use, read_functions, schema));
  table.back().description = "Older name of tools; the answer then has a function_call.";
  table.push_back(
      custom_field("function_call", use, read_function_call, R"({"enum": ["none", "auto"]})"));
  table.back().description =
      "Older name of tool_choice; with functions also an object with the name of one.";
}

}  // namespace

std::vector<Field> tool_field_table(ToolUse& use, ToolShape shape) {
  std::vector<Field> table = {
      {.name = "tools",
       .target = CustomField{[&use, shape](std::string_view, const RequestJson& value) {
                               return read_tools(value, shape, use);
                             },
                             tools_schema(shape)},
       .description =
           "Functions that the model may call, and custom tools, which it calls with a text."},
      {.name = "tool_choice",
       .target = CustomField{[&use, shape](std::string_view, const RequestJson& value) {
                               return read_tool_choice(value, shape, use);
                             },
                             tool_choice_schema(shape)},
       .description = "Whether the model may call them; with tools also required, and as an object "
                      "a certain function, or allowed_tools with those alone that may be called."},
      {.name = "parallel_tool_calls",
       .target = &use.has_parallel_calls,
       .description = "Whether an answer may hold several calls."},
  };
  if (shape == ToolShape::kNested) add_function_fields(use, table);
  return table;
}

void describe_tools_together(nlohmann::json& schema) {
  add_rule(schema,
           parse_json(R"({"anyOf": [{"properties": {"tool_choice": {"type": ["string", "null"]}}},
      {"required": ["tools"], "properties": {"tools": {"type": "array", "minItems": 1}}}]})"));
  add_rule(schema, parse_json(R"({"anyOf": [{"properties": {"tools": {"maxItems": 0}}},
                                            {"properties": {"functions": {"maxItems": 0}}}]})"));
}

std::optional<ApiError> check_together(const ToolUse& use) {
  if (use.mode == ToolMode::kRequired && use.tools.empty()) return choice_without_tools();
  std::set<std::string_view> known;
  for (const ToolDefinition& tool : use.tools) known.insert(tool.name);
  std::vector<std::string> names = use.allowed;
  if (!use.function.empty()) names.push_back(use.function);
  for (const std::string& name : names) {
    if (known.contains(name)) continue;
    const std::string_view choice = use.are_functions ? "function_call" : "tool_choice";
    const std::string_view list = use.are_functions ? "functions" : "tools";
    return bad_request(std::string(choice),
                       fmt::format("'{}': '{}' has no function '{}'", choice, list, name),
                       "unknown_function");
  }
  return {};
}

}  // namespace pagoda
