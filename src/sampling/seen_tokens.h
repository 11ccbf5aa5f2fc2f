// SeenTokens: the distinct tokens of a sequence, with how often each occurs in the output.
//
// A token's index is its place in the order of first appearances; it stays the same while tokens
// are appended or taken back. Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace pagoda {

struct SeenToken {
  int token_id = 0;
  int output_count = 0;  // 0: occurs in the prompt alone, or all of it was taken back
};

class SeenTokens {
 public:
  // Allocates all its memory, for at most `max_tokens` distinct tokens.
  explicit SeenTokens(int max_tokens);

  // Counts an occurrence and returns the token's index.
  int add(int token_id, bool is_output);
  // Takes back an occurrence in the output, which was added before.
  void take_back(int token_id);
  void clear();

  std::span<const SeenToken> entries() const { return entries_; }

 private:
  // Returns the token's slot in the table, or the empty one that it would take.
  std::size_t find_slot(int token_id) const;

  std::vector<SeenToken> entries_;
  // A hash table with open addressing of indices into entries_; -1: empty. Its size is a power of
  // two.
  std::vector<std::int32_t> table_;
};

}  // namespace pagoda
