// Fields by which a request lets the model call functions (OpenAI's): tools, tool_choice,
// parallel_tool_calls.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "answer/tool_definition.h"
#include "server/fields/field_reader.h"

namespace pagoda {

inline constexpr std::size_t kMaxTools = 1024;
inline constexpr std::size_t kMaxFunctionNameChars = 256;

enum class ToolMode : std::uint8_t {
  kNone,      // no calls, and the prompt does not tell of tools
  kAuto,      // the model chooses
  kRequired,  // calls alone
};

struct ToolFields {
  std::string tools_json;  // as sent, for the template; "": none
  std::vector<ToolDefinition> tools;
  ToolMode mode = ToolMode::kAuto;
  std::string function;              // the one that must be called; "": any
  std::vector<std::string> allowed;  // those alone that may be called; empty: all
  bool has_parallel_calls = true;

  // Says whether the answer may hold calls.
  bool are_used() const { return !tools.empty() && mode != ToolMode::kNone; }
};

// How a function stands in a tool: {"type": "function", "function": {"name": ...}} in chats,
// {"type": "function", "name": ...} in /v1/responses.
enum class ToolShape : std::uint8_t { kNested, kFlat };

// Reads `tools` alone.
std::optional<ApiError> read_tools(const RequestJson& value, ToolShape shape, ToolFields& fields);
// Pointers into `fields`, which must outlive the result.
std::vector<Field> tool_field_table(ToolFields& fields, ToolShape shape);
// Refuses calls that must be made without tools, and functions that are not among them.
std::optional<ApiError> check_together(const ToolFields& fields);

}  // namespace pagoda
