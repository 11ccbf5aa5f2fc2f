// AnswerFormat: how a model writes thoughts and tool calls in its text. In a checkpoint only the
// chat template shows it, because it prints the model's earlier calls.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace pagoda {

// The syntaxes of calls, named like vLLM's parsers:
enum class ToolSyntax : std::uint8_t {
  kHermes,     // <tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>
  kQwenXml,    // <tool_call><function=f><parameter=x>1</parameter></function></tool_call>
  kLlama3,     // {"name": "f", "parameters": {"x": 1}}; {...}  as the whole answer
  kPythonic,   // [f(x=1), g()]  as the whole answer
  kMistral,    // [TOOL_CALLS][{"name": "f", "arguments": {"x": 1}}]
  kMistralV11  // [TOOL_CALLS]f[ARGS]{"x": 1}
};

struct ThoughtMarks {
  std::string begin, end;  // neither is empty
  bool operator==(const ThoughtMarks&) const = default;
};

struct AnswerFormat {
  ToolSyntax tool_syntax = ToolSyntax::kHermes;
  std::optional<ThoughtMarks> thought;  // absent: the model writes no thoughts
  bool operator==(const AnswerFormat&) const = default;
};

// Returns the format that a template's text shows; "" if there is no template.
AnswerFormat answer_format_of(std::string_view chat_template);

// Parses a parser's name: hermes, qwen3_xml, llama3_json, pythonic, mistral, mistral_v11.
// kInvalidArgument lists the names.
Result<ToolSyntax> tool_syntax_of(std::string_view name);
std::string_view tool_syntax_name(ToolSyntax syntax);
std::vector<std::string> tool_syntax_names();

// The tag that closes calls in the syntaxes that begin them with <tool_call>.
inline constexpr std::string_view kCallEndTag = "</tool_call>";

// Returns texts that each begin a call anywhere in an answer. None contains another.
std::vector<std::string> call_marks(ToolSyntax syntax);
// Returns the character that begins a call if it is the answer's first one after white space; 0:
// only marks begin calls.
char bare_call_beginning(ToolSyntax syntax);

}  // namespace pagoda
