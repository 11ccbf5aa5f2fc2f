// Reads calls written as a list in Python, `[get_weather(city="Paris", days=3), now()]`, as Llama
// 3.2 and 4 write them. Arguments are literals of Python or JSON, with names. The calls are
// returned at the list's end, because until then the text may be another kind of list.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "answer/call_reader.h"

namespace pagoda {

class PythonCallReader : public CallReader {
 public:
  explicit PythonCallReader(std::span<const ToolDefinition> tools) : tools_(tools) {}

  State feed(char c, std::vector<AnswerPart>& parts) override;

 private:
  bool may_go_on() const;
  void begin_string(char quote);
  void take_string(char c);

  std::span<const ToolDefinition> tools_;
  std::string text_;
  int depth_ = 0;
  char quote_ = 0;                // the quote of the open string; 0: none is open
  bool is_triple_ = false;        // the open string has three quotes at each end
  int num_end_quotes_ = 0;        // at the end of text_, within the open string
  std::size_t string_begin_ = 0;  // of the open string's text
  std::size_t empty_end_ = 0;     // the end of the latest empty string
  bool is_escaped_ = false;
  bool has_call_ = false;  // text_ begins with [name(
};

}  // namespace pagoda
