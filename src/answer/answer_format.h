// AnswerFormat: how a model writes thoughts and tool calls between its prose. A checkpoint says it
// nowhere but in its chat template, which shows the model its own earlier calls.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace pagoda {

// The ways to write a call, by vLLM's names of their parsers:
enum class ToolSyntax : std::uint8_t {
  kHermes,     // <tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>
  kQwenXml,    // <tool_call><function=f><parameter=x>1</parameter></function></tool_call>
  kLlama3,     // {"name": "f", "parameters": {"x": 1}}; {...}  as the whole answer
  kPythonic,   // [f(x=1), g()]  as the whole answer
  kMistral,    // [TOOL_CALLS][{"name": "f", "arguments": {"x": 1}}]
  kMistralV11  // [TOOL_CALLS]f[ARGS]{"x": 1}
};

struct ThoughtMarks {
  std::string begin, end;  // none of them empty
  bool operator==(const ThoughtMarks&) const = default;
};

struct AnswerFormat {
  ToolSyntax tool_syntax = ToolSyntax::kHermes;
  // Otherwise the template would leave tools out without a word: describe_tools() puts them into
  // the messages.
  bool template_has_tools = false;
  std::optional<ThoughtMarks> thought;  // absent: the model does not think aloud
  bool operator==(const AnswerFormat&) const = default;
};

// Returns what a template's text shows; "" where there is none.
AnswerFormat answer_format_of(std::string_view chat_template);

// Takes a parser's name: hermes, qwen3_xml, llama3_json, pythonic, mistral, mistral_v11.
// kInvalidArgument lists them.
Result<ToolSyntax> tool_syntax_of(std::string_view name);
std::string_view tool_syntax_name(ToolSyntax syntax);
std::vector<std::string> tool_syntax_names();

// Returns the texts any of which begins a call wherever it stands. None is a part of another.
std::vector<std::string> call_marks(ToolSyntax syntax);
// Returns the character that begins a call as the first of an answer that is not white space; 0:
// calls begin with marks alone.
char bare_call_beginning(ToolSyntax syntax);

}  // namespace pagoda
