// Grammars that constrain an answer to tool calls in the model's syntax, or to JSON, possibly after
// a thought.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "answer/answer_format.h"
#include "answer/tool_definition.h"

namespace pagoda {

// The most calls of an answer that may have only calls. Small models would repeat one without end.
inline constexpr int kMaxCalls = 16;

struct AnswerGrammarOptions {
  ToolSyntax syntax = ToolSyntax::kHermes;
  // The answer may also have prose, or no call at all. Then only the arguments of strict tools
  // follow their schemas; other tools accept any object.
  bool may_hold_prose = false;
  // A JSON Schema: the answer may be JSON that it validates instead of calls, but no prose.
  // Arguments of tools that are not strict may then be any object too.
  std::optional<std::string> json_schema;
  bool has_one_call = false;            // false: one to kMaxCalls
  std::optional<ThoughtMarks> thought;  // allowed before the answer; absent: none is
  bool begins_in_thought = false;       // the prompt ends inside a thought
  // Returns the id of a text that is a special token, because text tokens cannot spell it; nothing
  // for other texts.
  std::function<std::optional<int>(std::string_view)> special_token_id;
};

// Returns a grammar of kind GrammarKind::kAnswer for answers with only calls of `tools`, unless the
// options allow more. The arguments follow each tool's schema. REQUIRES: `tools` has at least one,
// unless there is a json_schema. A grammar longer than kMaxGrammarBytes is refused anyway, so it
// may be incomplete.
std::string answer_grammar(std::span<const ToolDefinition> tools,
                           const AnswerGrammarOptions& options);

}  // namespace pagoda
