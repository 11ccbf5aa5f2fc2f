// Calls as a list of calls in Python, `[get_weather(city="Paris", days=3), now()]`, as Llama 3.2
// and 4 write them. Arguments are literals, Python's or JSON's, by name. The calls are told at the
// list's end, because nothing before it tells a list of calls from any other one.
#pragma once

#include <string>

#include "answer/call_reader.h"

namespace pagoda {

class PythonCallReader : public CallReader {
 public:
  State feed(char c, std::vector<AnswerPart>& parts) override;

 private:
  bool may_go_on() const;

  std::string text_;
  int depth_ = 0;
  char quote_ = 0;  // of the string that is open; 0: none is
  bool is_escaped_ = false;
  bool has_call_ = false;  // text_ begins with [name(
};

}  // namespace pagoda
