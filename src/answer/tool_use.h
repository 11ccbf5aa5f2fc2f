// ToolUse: the functions that a conversation brings, and how its answer may call them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "answer/tool_definition.h"

namespace pagoda {

enum class ToolMode : std::uint8_t {
  kNone,      // no calls, and the prompt does not tell of tools
  kAuto,      // the model chooses
  kRequired,  // calls alone
};

struct ToolUse {
  std::string tools_json;  // as they came, for the template; "": none
  std::vector<ToolDefinition> tools;
  ToolMode mode = ToolMode::kAuto;
  std::string function;              // the one that must be called; "": any
  std::vector<std::string> allowed;  // those alone that may be called; empty: all
  bool has_parallel_calls = true;

  // Says whether the answer may hold calls.
  bool is_allowed() const { return !tools.empty() && mode != ToolMode::kNone; }
};

}  // namespace pagoda
