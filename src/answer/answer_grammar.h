// Grammars that hold an answer to tool calls, in the syntax that the model knows, or to JSON, with a
// thought before.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "answer/answer_format.h"
#include "answer/tool_definition.h"

namespace pagoda {

struct AnswerGrammarOptions {
  ToolSyntax syntax = ToolSyntax::kHermes;
  // The answer may hold prose too, and no call at all. Then the arguments of those tools alone that
  // are strict follow their schemas; those of others are any objects.
  bool may_hold_prose = false;
  // A JSON Schema: instead of calls the answer may be text that it validates, and no prose. The
  // arguments of tools are then as free as beside prose.
  std::optional<std::string> json_schema;
  bool has_one_call = false;            // otherwise one or more
  std::optional<ThoughtMarks> thought;  // may stand before all of it; absent: it may not
  bool begins_in_thought = false;       // the prompt has begun it
  // Returns the id of a text that is a special token, which text cannot spell; nothing for others.
  std::function<std::optional<int>(std::string_view)> special_token_id;
};

// Returns the grammar of answers that are calls of `tools` and nothing else, unless the options say
// otherwise, as GrammarKind::kAnswer has it. The arguments follow each tool's schema. `tools` has at
// least one, unless there is a json_schema. Past kMaxGrammarBytes, where no grammar is taken, not
// all of it is written.
std::string answer_grammar(std::span<const ToolDefinition> tools,
                           const AnswerGrammarOptions& options);

}  // namespace pagoda
