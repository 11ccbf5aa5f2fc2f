// ToolDefinition: a function that a request allows the model to call.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

namespace pagoda {

// The only argument of a custom tool.
inline constexpr std::string_view kCustomInput = "input";

struct ToolDefinition {
  std::string name;
  std::string parameters_json;  // a JSON Schema, an object; "": the function has none
  bool is_strict = false;       // arguments must fit the schema, even if calls are optional
  bool is_custom = false;       // the client gets the text of kCustomInput instead of arguments
  std::string input_regex;      // of a custom tool: the whole input matches it; "": any text
};

// Returns the tool with a name; null if there is none.
inline const ToolDefinition* find_tool(std::span<const ToolDefinition> tools,
                                       std::string_view name) {
  const auto found = std::find_if(tools.begin(), tools.end(),
                                  [&](const ToolDefinition& tool) { return tool.name == name; });
  return found == tools.end() ? nullptr : &*found;
}

}  // namespace pagoda
