// CallReader: reads one call, or one list of calls, byte by byte.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "answer/answer_format.h"
#include "answer/answer_part.h"
#include "answer/tool_definition.h"

namespace pagoda {

class CallReader {
 public:
  enum class State : std::uint8_t {
    kMore,
    kDone,   // this byte ends the calls
    kBroken  // the bytes not returned as parts, with this one, are not part of a call
  };

  virtual ~CallReader() = default;

  // Reads a byte. Appends the parts that are certain so far, of the kinds kCall, kArguments and
  // kCallEnd, to `parts`. REQUIRES: no feed() after kDone or kBroken. The parts depend only on the
  // bytes read so far.
  virtual State feed(char c, std::vector<AnswerPart>& parts) = 0;
  // Ends the text within the calls: appends what is known of the open call. REQUIRES: no feed()
  // follows.
  virtual void finish(std::vector<AnswerPart>& /*parts*/) {}
};

// Returns a reader for text that begins with `first`; `first` must then be fed to it. It is the
// first character after a mark that is not white space, or the character that begins a call without
// a mark. Null: no call begins with it. A name that is not among `tools` is no call. REQUIRES:
// `tools` outlive the reader.
std::unique_ptr<CallReader> make_call_reader(ToolSyntax syntax, char first,
                                             std::span<const ToolDefinition> tools);

}  // namespace pagoda
