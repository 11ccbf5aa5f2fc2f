// ToolUse: the functions of a conversation, and how the answer may call them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "answer/tool_definition.h"

namespace pagoda {

enum class ToolMode : std::uint8_t {
  kNone,      // no calls, and the prompt does not mention tools
  kAuto,      // the model decides
  kRequired,  // the answer has only calls
};

struct ToolUse {
  std::string tools_json;  // as the client sent them, for the template; "": none
  std::vector<ToolDefinition> tools;
  ToolMode mode = ToolMode::kAuto;
  std::string function;              // the function that must be called; "": any
  std::vector<std::string> allowed;  // the only functions that may be called; empty: all
  bool has_parallel_calls = true;
  bool are_functions = false;  // asked for as OpenAI's older `functions`; so is the call answered

  // Returns whether the answer may have calls.
  bool is_allowed() const { return !tools.empty() && mode != ToolMode::kNone; }
};

}  // namespace pagoda
