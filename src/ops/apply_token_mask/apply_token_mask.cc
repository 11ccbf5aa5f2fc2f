#include "ops/apply_token_mask/apply_token_mask.h"

#include <fmt/format.h>

#include "core/token_mask.h"
#include "ops/check_tensor.h"

namespace pagoda {

Tensor apply_token_mask(Exec& exec, const Tensor& logits, const TokenMasks& masks) {
  constexpr std::string_view kName = "apply_token_mask";
  check_logits(kName, logits);
  const std::int64_t num_words = num_mask_words(logits.extent(1));
  PAGODA_CHECK(masks.words.dtype() == DType::kInt32 && masks.words.shape().rank() == 2 &&
                   masks.words.extent(0) > 0 && masks.words.extent(1) == num_words &&
                   masks.words.is_contiguous(),
               fmt::format("[{}] words: expected masks x {} int32, got {}", kName, num_words,
                           to_string(masks.words.shape())));
  check_tensor(kName, "mask_of", masks.mask_of, DType::kInt32, {logits.extent(0)});
  const OpTimer timer(exec, [&] {
    return OpCall{.op = kName, .read_bytes = bytes_of(logits) + bytes_of(masks.words)};
  });
  static constexpr Bodies<decltype(reference::apply_token_mask)> kBodies{
      reference::apply_token_mask, cpu::apply_token_mask, gpu::apply_token_mask};
  return kBodies.of(exec)(exec, logits, masks);
}

}  // namespace pagoda
