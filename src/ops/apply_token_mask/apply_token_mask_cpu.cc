#include <algorithm>
#include <limits>

#include "backend/cpu/cpu_exec.h"
#include "ops/apply_token_mask/apply_token_mask.h"

namespace pagoda::cpu {
namespace {

// Copies the allowed logits. A grammar allows few tokens or nearly all, so most words have all bits
// clear or all set.
template <typename T>
void copy_allowed(const T* from, std::span<const std::int32_t> words, std::int64_t vocab_size,
                  T* to) {
  const T banned = from_float<T>(-std::numeric_limits<float>::infinity());
  for (std::int64_t begin = 0; begin < vocab_size; begin += 32) {
    const auto word = static_cast<std::uint32_t>(words[begin / 32]);
    const std::int64_t end = std::min(begin + 32, vocab_size);
    if (word == 0) {
      std::fill(to + begin, to + end, banned);
      continue;
    }
    std::copy(from + begin, from + end, to + begin);
    if (word == ~std::uint32_t{0}) continue;
    for (std::int64_t id = begin; id < end; ++id) {
      if ((word >> (id - begin) & 1) == 0) to[id] = banned;
    }
  }
}

template <typename T>
Tensor mask_rows(Exec& exec, const Tensor& logits, const TokenMasks& masks) {
  Tensor out = exec.allocate(logits.dtype(), logits.shape());
  const std::int64_t vocab_size = logits.extent(1);
  const std::int64_t num_words = masks.words.extent(1);
  pool_of(exec).parallel_for(
      logits.extent(0), 1, [&](std::int64_t begin, std::int64_t end, int /*thread*/) {
        for (std::int64_t row = begin; row < end; ++row) {
          const T* from = logits.data<T>() + row * vocab_size;
          T* to = out.data<T>() + row * vocab_size;
          const std::int32_t mask = masks.mask_of.data<std::int32_t>()[row];
          if (mask < 0) {
            std::copy_n(from, vocab_size, to);
          } else {
            copy_allowed(from,
                         masks.words.span<std::int32_t>().subspan(mask * num_words, num_words),
                         vocab_size, to);
          }
        }
      });
  return out;
}

}  // namespace

Tensor apply_token_mask(Exec& exec, const Tensor& logits, const TokenMasks& masks) {
  if (logits.dtype() == DType::kFloat32) return mask_rows<float>(exec, logits, masks);
  if (logits.dtype() == DType::kBFloat16) return mask_rows<bf16>(exec, logits, masks);
  return mask_rows<f16>(exec, logits, masks);
}

}  // namespace pagoda::cpu
