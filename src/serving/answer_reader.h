// AnswerReader: splits the pieces of an answer into thoughts, calls and content. AnswerForm
// describes the form to expect. It depends on the model, the prompt's end and the conversation's
// options.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "answer/answer_parser.h"
#include "answer/tool_use.h"
#include "core/status.h"
#include "serving/served_model.h"
#include "serving/text_generation.h"
#include "text/grammar.h"

namespace pagoda {

struct AnswerForm {
  std::optional<AnswerParserOptions> parsing;  // absent: the whole answer is content
  // True if marks of calls or thoughts are special tokens, because the text must then show these.
  bool shows_special_tokens = false;
};

// Returns whether the rendered `prompt` ends inside a thought.
bool begins_in_thought(const ServedModel& model, std::string_view prompt);

// Returns the form of the answers to `prompt`. `grammar` is the grammar that is asked for. It is
// replaced if calls are required, or if calls or thoughts may occur beside required JSON.
// kInvalidArgument (field tool_choice) if calls are required together with another grammar.
Result<AnswerForm> resolve_answer_form(const ServedModel& model, std::string_view prompt,
                                       const ToolUse& tools, bool reads_thoughts,
                                       std::optional<GrammarRequest>& grammar);

// Thread-compatible.
class AnswerReader {
 public:
  explicit AnswerReader(const std::optional<AnswerParserOptions>& parsing);

  // Returns the parts in a piece; the last piece ends the answer.
  std::vector<AnswerPart> parts_of(const TextPiece& piece);
  bool has_calls() const { return parser_ && parser_->num_calls() > 0; }
  // Returns whether a call broke off. REQUIRES: the last piece has been read.
  bool has_broken_call() const { return parser_ && parser_->has_broken_call(); }

 private:
  std::optional<AnswerParser> parser_;
};

}  // namespace pagoda
