// OpenAI's custom tools, which the model calls with a text. To the model they are functions whose
// only argument is that text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/json.h"
#include "server/base/api_error.h"
#include "server/base/request_json.h"

namespace pagoda {

// A custom tool as a function.
struct CustomTool {
  RequestJson function;  // its name and description, unchecked, and its parameters
  std::string regex;     // the whole input matches it; "": any text
};

// Reads the format of a tool whose name and description stand in `custom`. `place`: the tool's path
// in errors, such as "tools[2]". A Lark grammar is only described to the model.
std::optional<ApiError> read_custom_tool(std::string_view place, const RequestJson& custom,
                                         CustomTool& tool);

// Returns the JSON Schema of a tool's format.
std::string_view custom_format_schema();

}  // namespace pagoda
