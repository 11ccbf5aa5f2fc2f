// A column's part of a unit of a panel, for packing and unpacking (gpu_panels.h).
#pragma once

#include <algorithm>
#include <cstdint>

#include "backend/gpu/gpu_panels.h"

namespace pagoda::gpu {

inline constexpr int kBlockSize = 32;  // number of k in a block
inline constexpr int kMaxUnit = 256;

struct UnitColumn {
  int num_k = 0;
  std::uint16_t halves[4] = {};
  std::uint32_t words[8] = {};
  std::uint8_t codes[kMaxUnit] = {};
};

// Place of a column's words in a section of `count` words per column.
class SectionColumn {
 public:
  SectionColumn(int count, int column) : count_(count), column_(column) {}
  std::int64_t index(int i) const {
    const int first = i / 4 * 4;
    return std::int64_t{kPanelColumns} * first + std::min(count_ - first, 4) * column_ + i - first;
  }

 private:
  int count_;
  int column_;
};

// Place of a code's high bits in a block's high plane.
struct HighPlace {
  int word;
  int bit;
};
// Returns the place of the high bits of code `k` of the block.
inline HighPlace high_place(int low_bits, int high_bits, int k) {
  const int i = k / (32 / low_bits), j = k % (32 / low_bits);
  const int slots = low_bits / high_bits;
  return {i / slots, low_bits * j + high_bits * (i % slots)};
}

// Beginnings of a unit's sections.
struct UnitSections {
  UnitSections(const PanelFormat& format, int num_k)
      : words(format.words_begin(num_k)),
        low(words + kPanelColumns * format.words(num_k)),
        high(low + (format.is_plain() ? 0 : format.low_bits() * num_k)) {}
  int words;
  int low;
  int high;
};

}  // namespace pagoda::gpu
