#include "engine/row_masks.h"

#include <algorithm>

#include "core/token_mask.h"

namespace pagoda {

RowMasks::RowMasks(int vocab_size, std::span<const int> eos_token_ids)
    : without_eos_(num_mask_words(vocab_size)) {
  for (const int id : eos_token_ids) {
    if (0 <= id && id < vocab_size) eos_token_ids_.push_back(id);
  }
}

void RowMasks::clear() {
  num_used_ = 0;
}

Result<std::span<const std::uint32_t>> RowMasks::of(const Sequence& sequence) {
  TokenMaskSource* const source = sequence.mask_source();
  if (source == nullptr) return std::span<const std::uint32_t>();
  if (num_used_ == masks_.size()) masks_.emplace_back(without_eos_.size());
  std::vector<std::uint32_t>& mask = masks_[num_used_++];
  if (!source->is_mask_near()) source->wait_for_mask(Clock::TimePoint::max());
  PAGODA_RETURN_IF_ERROR(source->fill_mask(mask));
  if (!sequence.params().ignore_eos) return std::span<const std::uint32_t>(mask);
  without_eos_ = mask;
  for (const int id : eos_token_ids_) without_eos_[id / 32] &= ~(1u << id % 32);
  const bool has_other = std::any_of(without_eos_.begin(), without_eos_.end(),
                                     [](std::uint32_t word) { return word != 0; });
  if (has_other) mask.swap(without_eos_);
  return std::span<const std::uint32_t>(mask);
}

}  // namespace pagoda
