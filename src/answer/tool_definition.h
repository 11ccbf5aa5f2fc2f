// ToolDefinition: a function that a request lets the model call.
#pragma once

#include <string>

namespace pagoda {

struct ToolDefinition {
  std::string name;
  std::string parameters_json;  // a JSON Schema, an object; "": the function takes none
  bool is_strict = false;       // calls are held to the schema, even where the model may choose
};

}  // namespace pagoda
