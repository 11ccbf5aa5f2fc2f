// Fields with which a request lets the model call functions (OpenAI's): tools, tool_choice,
// parallel_tool_calls, and in chats their older names functions and function_call.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "answer/tool_use.h"
#include "server/fields/field_reader.h"

namespace pagoda {

inline constexpr std::size_t kMaxTools = 1024;
inline constexpr std::size_t kMaxFunctionNameChars = 256;

// The shape of a function in a tool: {"type": "function", "function": {"name": ...}} in chats,
// {"type": "function", "name": ...} in /v1/responses. Custom tools have the same shapes.
enum class ToolShape : std::uint8_t { kNested, kFlat };

// Returns whether a tool's type is one of OpenAI's that is not served: its servers run such tools,
// or a client does that knows the type.
bool is_hosted_type(const RequestJson& type);

// Reads `tools` alone. Of flat tools, those of hosted types are passed over if there is a function
// or a custom tool too.
std::optional<ApiError> read_tools(const RequestJson& value, ToolShape shape, ToolUse& use);
// Returns the fields, which point into `use`: it must outlive the result.
std::vector<Field> tool_field_table(ToolUse& use, ToolShape shape);
// Adds the rules of these fields together to `schema`, the JSON Schema of a table with them.
void describe_tools_together(nlohmann::json& schema);
// Refuses a choice that requires calls without tools, or names a function that is no tool.
std::optional<ApiError> check_together(const ToolUse& use);

}  // namespace pagoda
