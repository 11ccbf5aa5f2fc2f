// AnswerPart: a piece of an answer, told apart from the others by what it is.
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
    kArguments,  // goes on with the latest call's arguments, which are JSON text in the end
  };
  Kind kind = Kind::kContent;
  std::string text;
  bool operator==(const AnswerPart&) const = default;
};

// Appends a part, or lengthens the last one where it is of that kind. A call always begins anew.
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
