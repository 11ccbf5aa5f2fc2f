#include "answer/answer_format.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace pagoda {
namespace {

struct SyntaxName {
  std::string_view name;
  ToolSyntax syntax;
};

constexpr SyntaxName kSyntaxNames[] = {
    {"hermes", ToolSyntax::kHermes},      {"qwen3_xml", ToolSyntax::kQwenXml},
    {"llama3_json", ToolSyntax::kLlama3}, {"pythonic", ToolSyntax::kPythonic},
    {"mistral", ToolSyntax::kMistral},    {"mistral_v11", ToolSyntax::kMistralV11},
};

// Texts that all occur only in templates of this syntax. The first matching row counts.
struct SyntaxSign {
  std::array<std::string_view, 2> texts;
  ToolSyntax syntax;
};

constexpr SyntaxSign kSyntaxSigns[] = {
    {{"<function=", "<parameter="}, ToolSyntax::kQwenXml},
    {{"[TOOL_CALLS]", "[ARGS]"}, ToolSyntax::kMistralV11},
    {{"[TOOL_CALLS]", ""}, ToolSyntax::kMistral},
    {{"<tool_call>", ""}, ToolSyntax::kHermes},
    // One of the two templates of Llama 3.2 and 4 asks for Python. Llama 3.1 to 3.3 ask for JSON.
    {{"func_name1(params_name1", ""}, ToolSyntax::kPythonic},
    {{"<|python_start|>", ""}, ToolSyntax::kPythonic},
    {{"<|start_header_id|>", "\"parameters\": "}, ToolSyntax::kLlama3},
};

struct ThoughtSign {
  std::string_view begin, end;
};

constexpr ThoughtSign kThoughtSigns[] = {{"<think>", "</think>"}, {"[THINK]", "[/THINK]"}};

bool holds(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace

AnswerFormat answer_format_of(std::string_view chat_template) {
  AnswerFormat format;
  for (const SyntaxSign& sign : kSyntaxSigns) {
    const bool fits = std::all_of(sign.texts.begin(), sign.texts.end(), [&](std::string_view text) {
      return holds(chat_template, text);
    });
    if (!fits) continue;
    format.tool_syntax = sign.syntax;
    break;
  }
  // A template may contain only the end mark, to remove thoughts from earlier answers.
  for (const ThoughtSign& sign : kThoughtSigns) {
    if (format.thought || !holds(chat_template, sign.end)) continue;
    format.thought = ThoughtMarks{.begin = std::string(sign.begin), .end = std::string(sign.end)};
  }
  return format;
}

Result<ToolSyntax> tool_syntax_of(std::string_view name) {
  const auto* const found = std::find_if(std::begin(kSyntaxNames), std::end(kSyntaxNames),
                                         [&](const SyntaxName& each) { return each.name == name; });
  if (found != std::end(kSyntaxNames)) return found->syntax;
  return invalid_argument("expected one of {}, got '{}'", fmt::join(tool_syntax_names(), ", "),
                          name);
}

std::vector<std::string> tool_syntax_names() {
  std::vector<std::string> names;
  for (const SyntaxName& each : kSyntaxNames) names.emplace_back(each.name);
  return names;
}

std::string_view tool_syntax_name(ToolSyntax syntax) {
  return std::find_if(std::begin(kSyntaxNames), std::end(kSyntaxNames),
                      [&](const SyntaxName& each) { return each.syntax == syntax; })
      ->name;
}

std::vector<std::string> call_marks(ToolSyntax syntax) {
  switch (syntax) {
    case ToolSyntax::kHermes:
      return {"<tool_call>"};
    case ToolSyntax::kQwenXml:
      return {"<tool_call>", "<function="};  // some answers have no tag around the function
    case ToolSyntax::kLlama3:
      return {"<|python_tag|>"};
    case ToolSyntax::kPythonic:
      return {"<|python_start|>"};
    case ToolSyntax::kMistral:
    case ToolSyntax::kMistralV11:
      return {"[TOOL_CALLS]"};
  }
  return {};
}

char bare_call_beginning(ToolSyntax syntax) {
  if (syntax == ToolSyntax::kLlama3) return '{';
  if (syntax == ToolSyntax::kPythonic) return '[';
  return 0;
}

}  // namespace pagoda
