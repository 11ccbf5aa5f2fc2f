// RowMasks: the tokens that the rows of a step may draw, for sequences with a grammar.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/status.h"
#include "engine/sequence.h"

namespace pagoda {

// Belongs to the engine thread.
class RowMasks {
 public:
  RowMasks(int vocab_size, std::span<const int> eos_token_ids);

  void clear();  // keeps the memory

  // Waits for the sequence's mask and returns it: [(vocab_size + 31) / 32], valid until clear();
  // empty if the sequence has no grammar. A request that ignores the end of sequence may draw it
  // only if the mask allows nothing else.
  Result<std::span<const std::uint32_t>> of(const Sequence& sequence);

 private:
  std::vector<std::vector<std::uint32_t>> masks_;
  std::size_t num_used_ = 0;
  std::vector<std::uint32_t> without_eos_;
  std::vector<int> eos_token_ids_;
};

}  // namespace pagoda
