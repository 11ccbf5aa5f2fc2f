// SeenTokens: the distinct tokens of a sequence, with how often each stands in the output.
//
// A token's index is its place in the order of first appearances; it stays the same while tokens
// are appended. Thread-compatible.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace pagoda {

struct SeenToken {
  int token_id = 0;
  int output_count = 0;  // 0: stands in the prompt alone
};

class SeenTokens {
 public:
  // Makes room for at most `max_tokens` distinct ones, whose memory is taken now.
  explicit SeenTokens(int max_tokens);

  // Returns the token's index.
  int add(int token_id, bool is_output);
  void clear();

  std::span<const SeenToken> entries() const { return entries_; }

 private:
  std::vector<SeenToken> entries_;
  // Open addressing over entries_; -1: empty. Its size is a power of two.
  std::vector<std::int32_t> table_;
};

}  // namespace pagoda
