// TokenMaskSource: the tokens that may come next in one sample's text if a grammar constrains it.
// src/text knows grammars; the engine sees them only through this interface.
//
// A source follows its sample token by token. When is_stopped() is true, the sample ends.
// Thread-compatible: callers make sure that only one thread at a time calls it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/clock.h"
#include "core/status.h"

namespace pagoda {

class TokenMaskSource {
 public:
  virtual ~TokenMaskSource() = default;

  // Returns an independent copy in the same state.
  virtual std::unique_ptr<TokenMaskSource> clone() const = 0;

  // Fills a mask: bit i % 32 of bits[i / 32] says whether token i may come next. End-of-sequence
  // ids may come next if the text may end. bits: [(vocab_size + 31) / 32] or more words, the same
  // number in every call; all are written. kInvalidArgument: the grammar has become too complex,
  // and only this sample must fail.
  virtual Status fill_mask(std::span<std::uint32_t> bits) = 0;

  // Returns whether fill_mask() will probably be fast. If not, fill_mask() computes the mask itself
  // and delays its caller. A caller that must not be delayed calls wait_for_mask().
  virtual bool is_mask_near() const { return true; }

  // Makes other threads compute the mask, and waits for it until the given time, which may be past.
  // Returns whether the mask is ready, so that fill_mask() only copies it.
  virtual bool wait_for_mask(Clock::TimePoint) { return true; }

  // Advances by the sampled token. kInvalidArgument if its bit was not set, or as for fill_mask().
  virtual Status accept(int token_id) = 0;

  // Returns whether the text is complete, so that only its end may follow.
  virtual bool is_stopped() const = 0;
};

}  // namespace pagoda
