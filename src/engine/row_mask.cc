#include "engine/row_mask.h"

#include <algorithm>

namespace pagoda {

RowMask::RowMask(int vocab_size, std::span<const int> eos_token_ids)
    : bits_((static_cast<std::size_t>(vocab_size) + 31) / 32), without_eos_(bits_.size()) {
  for (const int id : eos_token_ids) {
    if (0 <= id && id < vocab_size) eos_token_ids_.push_back(id);
  }
}

Result<std::span<const std::uint32_t>> RowMask::of(const Sequence& sequence) {
  TokenMaskSource* const source = sequence.mask_source();
  if (source == nullptr) return std::span<const std::uint32_t>();
  PAGODA_RETURN_IF_ERROR(source->fill_mask(bits_));
  if (!sequence.params().ignore_eos) return std::span<const std::uint32_t>(bits_);
  without_eos_ = bits_;
  for (const int id : eos_token_ids_) without_eos_[id / 32] &= ~(1u << id % 32);
  const bool has_other = std::any_of(without_eos_.begin(), without_eos_.end(),
                                     [](std::uint32_t word) { return word != 0; });
  return std::span<const std::uint32_t>(has_other ? without_eos_ : bits_);
}

}  // namespace pagoda
