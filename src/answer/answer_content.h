// AnswerContent: the content of an answer, for APIs that have one place for all of its text.
#pragma once

#include <string>
#include <string_view>

#include "answer/answer_part.h"
#include "answer/white_space.h"

namespace pagoda {

// Returns what stands before a further text of an answer where its texts become one: a line's end,
// unless the model has written white space there.
inline std::string_view before_further(std::string_view text) {
  return text.empty() || is_white_space(text.front()) ? "" : "\n";
}

// Thread-compatible.
class AnswerContent {
 public:
  // Returns the text that the answer's next part adds to the content; "": none. A further text
  // stands behind a call.
  std::string added_by(const AnswerPart& part) {
    if (part.kind == AnswerPart::Kind::kCall) is_behind_call_ = true;
    if (part.kind != AnswerPart::Kind::kContent || part.text.empty()) return "";
    std::string added;
    if (has_text_ && is_behind_call_) added = before_further(part.text);
    has_text_ = true;
    is_behind_call_ = false;
    return added + part.text;
  }

 private:
  bool has_text_ = false;
  bool is_behind_call_ = false;  // since the latest text
};

}  // namespace pagoda
