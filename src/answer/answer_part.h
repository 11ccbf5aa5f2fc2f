// AnswerPart: a piece of an answer, with its kind.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pagoda {

struct AnswerPart {
  enum class Kind : std::uint8_t {
    kContent,
    kThought,
    kCall,       // begins a call: `text` is the function's name
    kArguments,  // more of the latest call's arguments
    // The latest call is whole: its arguments, joined, are the text of a JSON object. `text` is
    // empty. A call without this part broke off, and must not be run.
    kCallEnd,
  };
  Kind kind = Kind::kContent;
  std::string text;
  bool operator==(const AnswerPart&) const = default;
};

// Appends a part, or extends the last part if it has the same kind. A call always begins a new
// part.
inline void append_part(std::vector<AnswerPart>& parts, AnswerPart::Kind kind, std::string text) {
  const bool continues =
      kind != AnswerPart::Kind::kCall && !parts.empty() && parts.back().kind == kind;
  if (continues) {
    parts.back().text += text;
  } else {
    parts.push_back({kind, std::move(text)});
  }
}

}  // namespace pagoda
