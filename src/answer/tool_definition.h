// ToolDefinition: a function that a request allows the model to call.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

namespace pagoda {

struct ToolDefinition {
  std::string name;
  std::string parameters_json;  // a JSON Schema, an object; "": the function has none
  bool is_strict = false;       // arguments must fit the schema, even if calls are optional
};

// Returns the tool with a name; null if there is none.
inline const ToolDefinition* find_tool(std::span<const ToolDefinition> tools,
                                       std::string_view name) {
  const auto found = std::find_if(tools.begin(), tools.end(),
                                  [&](const ToolDefinition& tool) { return tool.name == name; });
  return found == tools.end() ? nullptr : &*found;
}

}  // namespace pagoda
