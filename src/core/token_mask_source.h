// TokenMaskSource: what may come next in one sample's text, where a grammar holds it. Text knows
// grammars, the engine meets them only here.
//
// A source follows its sample token by token; the sample's end is the grammar's matter where
// is_stopped() says so. Thread-compatible: its callers make sure that one thread at a time calls
// it.
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

  // Returns another one in the same state, which goes its own way from here.
  virtual std::unique_ptr<TokenMaskSource> clone() const = 0;

  // Fills a mask: bit i % 32 of bits[i / 32] says whether token i may come next; end-of-sequence
  // ids may where the text may end. bits: [(vocab_size + 31) / 32] or more, as many in every call;
  // all of them are written. kInvalidArgument: the grammar has become too complex to go on, which
  // concerns this sample alone.
  virtual Status fill_mask(std::span<std::uint32_t> bits) = 0;

  // Returns whether fill_mask() takes little or nothing now, as far as can be told. Else it makes
  // the mask itself, and so delays its caller; a caller that cannot wait asks for it by
  // wait_for_mask().
  virtual bool is_mask_near() const { return true; }

  // Lets others make the mask, and waits for them until `deadline`, which may be past: true if it
  // is there, and fill_mask() copies it.
  virtual bool wait_for_mask(Clock::TimePoint) { return true; }

  // Takes the token that came. kInvalidArgument for one whose bit was not set, or as above.
  virtual Status accept(int token_id) = 0;

  // Returns whether the text is complete, and nothing but its end may follow.
  virtual bool is_stopped() const = 0;
};

}  // namespace pagoda
