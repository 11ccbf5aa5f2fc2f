#include "answer/answer_format.h"

#include <gtest/gtest.h>

namespace pagoda {
namespace {

TEST(AnswerFormat, SyntaxIsWhatTheTemplateShows) {
  const struct {
    std::string_view chat_template;
    ToolSyntax syntax;
  } cases[] = {
      {R"({%- if tools %}<tools>{{ tools }}</tools> <tool_call>\n{"name": ...}\n</tool_call>)",
       ToolSyntax::kHermes},
      {"{% if tools %}<tool_call>\n<function=example>\n<parameter=x>", ToolSyntax::kQwenXml},
      {R"({% if tools %}[AVAILABLE_TOOLS]{{ tools }}[/AVAILABLE_TOOLS]{{ "[TOOL_CALLS][" }})",
       ToolSyntax::kMistral},
      {R"({% if tools %}{{ "[TOOL_CALLS]" + name + "[ARGS]" }})", ToolSyntax::kMistralV11},
      {R"(<|start_header_id|>{% if tools %}{{ '{"name": "' + name + '", ' }}{{ '"parameters": ' }})",
       ToolSyntax::kLlama3},
      {"<|start_header_id|>{% if tools %}[func_name1(params_name1=params_value1)]",
       ToolSyntax::kPythonic},
  };
  for (const auto& each : cases) {
    const AnswerFormat format = answer_format_of(each.chat_template);
    EXPECT_EQ(tool_syntax_name(format.tool_syntax), tool_syntax_name(each.syntax))
        << each.chat_template;
  }
}

TEST(AnswerFormat, ATemplateThatShowsNothingHasTheDefaults) {
  const AnswerFormat format =
      answer_format_of("{% for message in messages %}{{ message['content'] }}{% endfor %}");
  EXPECT_EQ(format, AnswerFormat());
  EXPECT_EQ(answer_format_of(""), AnswerFormat());
}

TEST(AnswerFormat, ThoughtsAreKnownByTheirEnd) {
  EXPECT_EQ(answer_format_of("{{ content.split('</think>')[-1] }}").thought,
            (ThoughtMarks{"<think>", "</think>"}));
  EXPECT_EQ(answer_format_of("[THINK]...[/THINK]").thought, (ThoughtMarks{"[THINK]", "[/THINK]"}));
}

TEST(AnswerFormat, EachSyntaxHasAName) {
  for (const char* name :
       {"hermes", "qwen3_xml", "llama3_json", "pythonic", "mistral", "mistral_v11"}) {
    const auto syntax = tool_syntax_of(name);
    ASSERT_TRUE(syntax.ok()) << name;
    EXPECT_EQ(tool_syntax_name(*syntax), name);
  }
  EXPECT_EQ(tool_syntax_of("gemma").status().message(),
            "expected one of hermes, qwen3_xml, llama3_json, pythonic, mistral, mistral_v11, got "
            "'gemma'");
}

}  // namespace
}  // namespace pagoda
