#include "answer/call_reader.h"

#include "answer/json_call_reader.h"
#include "answer/python_call_reader.h"
#include "answer/xml_call_reader.h"

namespace pagoda {

std::unique_ptr<CallReader> make_call_reader(ToolSyntax syntax, char first,
                                             std::span<const ToolDefinition> tools) {
  if (syntax == ToolSyntax::kPythonic)
    return first == '[' ? std::make_unique<PythonCallReader>(tools) : nullptr;
  if (first == '{' || first == '[')
    return std::make_unique<JsonCallReader>(tools, syntax != ToolSyntax::kLlama3);
  if (syntax == ToolSyntax::kMistral || syntax == ToolSyntax::kMistralV11)
    return std::make_unique<NamedCallReader>(tools);
  if (first == '<' && syntax != ToolSyntax::kLlama3) return std::make_unique<XmlCallReader>(tools);
  return nullptr;
}

}  // namespace pagoda
