// AnswerReader: takes an answer's pieces apart into thoughts, calls and content. AnswerForm says how:
// it follows from the model, the prompt's end and what the conversation asks for.
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
  std::optional<AnswerParserOptions> parsing;  // absent: answers are content as they come
  // Marks of what is read are special tokens, so that the text must show these.
  bool shows_special_tokens = false;
};

// Returns whether `prompt`, as its template wrote it, ends inside a thought.
bool begins_in_thought(const ServedModel& model, std::string_view prompt);

// Returns the form of the answers to `prompt`. Replaces `grammar`, the one that is asked for, where
// answers are held to calls. Does so too where calls or thoughts may stand beside the JSON that
// answers are held to. Errors, of the field tool_choice: another grammar beside calls that must be
// made.
Result<AnswerForm> resolve_answer_form(const ServedModel& model, std::string_view prompt,
                                       const ToolUse& tools, bool reads_thoughts,
                                       std::optional<GrammarRequest>& grammar);

// Thread-compatible.
class AnswerReader {
 public:
  explicit AnswerReader(const std::optional<AnswerParserOptions>& parsing);

  // Returns the parts that a piece brings; the last piece ends the answer.
  std::vector<AnswerPart> parts_of(const TextPiece& piece);
  bool has_calls() const { return parser_ && parser_->num_calls() > 0; }

 private:
  std::optional<AnswerParser> parser_;
};

}  // namespace pagoda
