#include "draw/drawn_token.h"

namespace pagoda {

Status status_of_drawn(std::int32_t drawn, std::int64_t vocab_size) {
  if (drawn == kRowIsNotNumbers)
    return invalid_argument("[sampler] logits: expected numbers, got NaN or +inf");
  if (drawn == kRowHasNoToken) {
    return invalid_argument("[sampler] logits: expected a token to choose, got -inf for all {}",
                            vocab_size);
  }
  return ok_status();
}

}  // namespace pagoda
