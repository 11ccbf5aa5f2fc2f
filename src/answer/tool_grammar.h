// Grammars that hold an answer to tool calls, in the syntax that the model knows.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "answer/answer_format.h"
#include "answer/tool_definition.h"

namespace pagoda {

struct ToolGrammarOptions {
  ToolSyntax syntax = ToolSyntax::kHermes;
  // The answer may hold prose too, and no call at all. Then the arguments of those tools alone that
  // are strict follow their schemas; those of others are any objects.
  bool may_hold_prose = false;
  bool has_one_call = false;            // otherwise one or more
  std::optional<ThoughtMarks> thought;  // may stand before the calls; absent: it may not
  bool begins_in_thought = false;       // the prompt has begun it
  // Returns the id of a text that is a special token, which text cannot spell; nothing for others.
  std::function<std::optional<int>(std::string_view)> special_token_id;
};

// Returns the grammar of answers that are calls of `tools` (at least one) and nothing else unless
// may_hold_prose, as GrammarKind::kToolCalls has it. The arguments follow each tool's schema.
std::string tool_grammar(std::span<const ToolDefinition> tools, const ToolGrammarOptions& options);

}  // namespace pagoda
