// Stop strings over streamed text: nothing that could still become a stop string is let out.
//
// The text ends with the first character that completes any stop string; of several that end there,
// the longest counts. So the result does not depend on how the text was cut into pieces. The
// matcher is Aho and Corasick's ("Efficient string matching", 1975): its state after each byte is
// the longest suffix that begins a stop string, which is exactly what must be held back. A byte
// costs amortised constant time, however many stop strings there are.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace pagoda {

// The strings, prepared. Immutable and thread-safe; one may serve many matchers, which point into
// it.
class StopStrings {
 public:
  // Prepares stop strings. kInvalidArgument for an empty string.
  static Result<StopStrings> create(std::span<const std::string> strings);

 private:
  friend class StopStringMatcher;

  // A prefix of a stop string. Node 0 is the empty one.
  struct Node {
    int length = 0;       // bytes of the prefix
    int fallback = 0;     // the longest proper suffix that is a prefix too
    int match = 0;        // bytes of the longest stop string that ends here, 0: none
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
    std::string text;  // what may be shown now
    bool stopped = false;
  };

  // REQUIRES: `strings` outlives the matcher. With include_stop the text keeps the stop string
  // (vLLM's include_stop_str_in_output).
  StopStringMatcher(const StopStrings* strings, bool include_stop)
      : strings_(strings), include_stop_(include_stop) {}

  // Takes more text. Once stopped, further text is dropped.
  Output push(std::string_view text);
  // Returns what was held back, where the text ended otherwise: it is part of it.
  std::string flush();

 private:
  const StopStrings* strings_;
  bool include_stop_;
  int state_ = 0;
  bool stopped_ = false;
  std::string held_;  // the suffix that state_ stands for
};

}  // namespace pagoda
