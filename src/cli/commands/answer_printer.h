// AnswerPrinter: prints the parts of an answer as they arrive. message_of(): the message they make.
#pragma once

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "answer/answer_parser.h"
#include "core/ordered_json.h"

namespace pagoda {

// Returns the parts of a whole answer as a message of the assistant, in OpenAI's shape: `content`,
// and `reasoning_content` and `tool_calls` if there are any.
OrderedJson message_of(const std::vector<AnswerPart>& parts);

// Prints a thought dim on a terminal with styles, else between the model's marks. Prints a call as
// a line of JSON with `name` and `arguments` once it is complete.
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
