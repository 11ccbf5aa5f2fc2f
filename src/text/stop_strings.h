// Finds stop strings in streamed text. Text that could still become a stop string is held back.
//
// The text ends with the first character that completes any stop string; if several end there, the
// longest counts. So the result does not depend on how the text was split into pieces. The matcher
// is Aho and Corasick's ("Efficient string matching", 1975). After each byte its state is the
// longest suffix that is a prefix of a stop string: exactly the text to hold back. A byte costs
// amortised constant time, however many stop strings there are.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace pagoda {

// The prepared strings. Immutable and thread-safe. Several matchers may point to one instance.
class StopStrings {
 public:
  // Prepares stop strings. kInvalidArgument if one is empty.
  static Result<StopStrings> create(std::span<const std::string> strings);

 private:
  friend class StopStringMatcher;

  // A prefix of a stop string. Node 0 is the empty prefix.
  struct Node {
    int length = 0;       // bytes of the prefix
    int fallback = 0;     // node of the longest proper suffix that is also a prefix
    int match = 0;        // bytes of the longest stop string that ends here; 0: none
    int first_child = 0;  // 0: none
    int next_sibling = 0;
    char byte = 0;
  };

  int child(int node, char byte) const;
  int step(int node, char byte) const;
  void add(std::string_view string);
  void link();

  std::vector<Node> nodes_ = {Node{}};
};

class StopStringMatcher {
 public:
  struct Output {
    std::string text;  // text that is final and may be shown
    bool stopped = false;
  };

  // REQUIRES: `strings` outlives the matcher. include_stop keeps the stop string in the text
  // (vLLM's include_stop_str_in_output).
  StopStringMatcher(const StopStrings* strings, bool include_stop)
      : strings_(strings), include_stop_(include_stop) {}

  // Takes more text. Once stopped, further text is dropped.
  Output push(std::string_view text);
  // Returns the text that is still held back. Call it when the text ends without a stop string.
  std::string flush();

 private:
  const StopStrings* strings_;
  bool include_stop_;
  int state_ = 0;
  bool stopped_ = false;
  std::string held_;  // the text of the prefix that state_ represents
};

}  // namespace pagoda
