// AnswerPrinter: prints the parts of an answer as they come; message_of(): what it is in the end.
#pragma once

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "answer/answer_parser.h"
#include "core/ordered_json.h"

namespace pagoda {

// Returns the parts of a whole answer as a message of the assistant, in OpenAI's shape: `content`,
// `reasoning_content` and `tool_calls`, the last two where there are any.
OrderedJson message_of(const std::vector<AnswerPart>& parts);

// A thought is dim on a terminal that has styles; elsewhere it stands between the model's marks. A
// call is a line of JSON with `name` and `arguments`, once it is whole.
class AnswerPrinter {
 public:
  AnswerPrinter(std::FILE* out, const std::optional<AnswerParserOptions>& parsing);

  void print(const std::vector<AnswerPart>& parts);
  // Ends the answer, and its last line.
  void end();

 private:
  void print_part(const AnswerPart& part);
  void print_thought(const std::string& text);
  void end_thought();
  void end_call();
  void write(const std::string& text);

  std::FILE* out_;
  ThoughtMarks marks_;
  bool has_styles_;
  bool is_in_thought_ = false;
  bool is_at_line_start_ = true;
  bool ends_with_call_ = false;
  std::optional<std::string> call_;  // the function's name
  std::string arguments_;
};

}  // namespace pagoda
