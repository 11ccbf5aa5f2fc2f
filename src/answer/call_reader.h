// CallReader: reads one place where a model writes calls, a byte at a time.
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
    kDone,   // with this byte
    kBroken  // this byte and what came before it without being told is text like any other
  };

  virtual ~CallReader() = default;

  // Reads a byte. Parts that are certain now, of the kinds kCall and kArguments, go to `parts`.
  // Nothing is fed behind kDone or kBroken. The parts depend on the bytes so far alone.
  virtual State feed(char c, std::vector<AnswerPart>& parts) = 0;
};

// Returns a reader for text that begins with `first`, which is fed to it too. `first`: the first
// character behind a mark that is not white space, or the bare beginning of a call. Null: no call
// begins so. REQUIRES: `tools` outlive the reader.
std::unique_ptr<CallReader> make_call_reader(ToolSyntax syntax, char first,
                                             std::span<const ToolDefinition> tools);

}  // namespace pagoda
