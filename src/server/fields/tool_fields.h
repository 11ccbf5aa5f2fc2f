// Fields with which a request lets the model call functions (OpenAI's): tools, tool_choice,
// parallel_tool_calls.
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
// {"type": "function", "name": ...} in /v1/responses.
enum class ToolShape : std::uint8_t { kNested, kFlat };

// Reads `tools` alone.
std::optional<ApiError> read_tools(const RequestJson& value, ToolShape shape, ToolUse& use);
// Returns the fields, which point into `use`: it must outlive the result.
std::vector<Field> tool_field_table(ToolUse& use, ToolShape shape);
// Refuses a choice that requires calls without tools, or names a function that is no tool.
std::optional<ApiError> check_together(const ToolUse& use);

}  // namespace pagoda
