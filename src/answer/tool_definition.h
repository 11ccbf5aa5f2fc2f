// ToolDefinition: a function that a request allows the model to call.
#pragma once

#include <string>

namespace pagoda {

struct ToolDefinition {
  std::string name;
  std::string parameters_json;  // a JSON Schema, an object; "": the function has none
  bool is_strict = false;       // arguments must fit the schema, even if calls are optional
};

}  // namespace pagoda
