// RowMask: the tokens that one row may draw, where a grammar holds its sequence.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/status.h"
#include "engine/sequence.h"

namespace pagoda {

// Belongs to the engine thread.
class RowMask {
 public:
  RowMask(int vocab_size, std::span<const int> eos_token_ids);

  // [(vocab_size + 31) / 32], valid until the next call; empty: the sequence has no grammar. Where
  // the request ignores the end of sequence, it is allowed only if nothing else is. Waits for the
  // mask, which others compute.
  Result<std::span<const std::uint32_t>> of(const Sequence& sequence);

 private:
  std::vector<std::uint32_t> bits_;
  std::vector<std::uint32_t> without_eos_;
  std::vector<int> eos_token_ids_;
};

}  // namespace pagoda
