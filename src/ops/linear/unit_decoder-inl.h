// Decodes units of 32 k of a panel to float32. The file is compiled once for each target of Highway
// (backend/cpu/panel_format.h describes the layouts).
#if defined(PAGODA_UNIT_DECODER_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef PAGODA_UNIT_DECODER_INL_H
#undef PAGODA_UNIT_DECODER_INL_H
#else
#define PAGODA_UNIT_DECODER_INL_H
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "backend/cpu/six_bit_words.h"
#include "hwy/highway.h"
#include "ops/linear/linear_kernels.h"

// Loops over registers must be unrolled: an array that is indexed at run time lives in memory.
#undef PAGODA_UNROLL
#define PAGODA_UNROLL _Pragma("GCC unroll 16")

HWY_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<float, kPanelColumns>;
using DI = hn::RebindToSigned<D>;
using V = hn::Vec<D>;
constexpr int kLanes = hn::MaxLanes(D());
constexpr int kVectors = kPanelColumns / kLanes;  // a panel's columns

// One k of a panel's 16 columns.
struct Vectors {
  V v[kVectors];

  HWY_INLINE void clear() {
    PAGODA_UNROLL
    for (int i = 0; i < kVectors; ++i) v[i] = hn::Zero(D());
  }
  HWY_INLINE void load(const float* from) {
    PAGODA_UNROLL
    for (int i = 0; i < kVectors; ++i) v[i] = hn::LoadU(D(), from + i * kLanes);
  }
  HWY_INLINE void load_halves(const std::byte* from) {
    const hn::Rebind<hwy::float16_t, D> d16;
    const auto* halves = reinterpret_cast<const hwy::float16_t*>(from);
    PAGODA_UNROLL
    for (int i = 0; i < kVectors; ++i) {
      v[i] = hn::PromoteTo(D(), hn::LoadU(d16, halves + i * kLanes));
    }
  }
  HWY_INLINE void load_bfloat16(const std::byte* from) {
    const hn::Rebind<std::uint16_t, D> d16;
    const hn::RebindToUnsigned<D> d32;
    const auto* words = reinterpret_cast<const std::uint16_t*>(from);
    PAGODA_UNROLL
    for (int i = 0; i < kVectors; ++i) {
      const auto bits = hn::PromoteTo(d32, hn::LoadU(d16, words + i * kLanes));
      v[i] = hn::BitCast(D(), hn::ShiftLeft<16>(bits));
    }
  }
  HWY_INLINE void store(float* to) const {
    PAGODA_UNROLL
    for (int i = 0; i < kVectors; ++i) hn::StoreU(v[i], D(), to + i * kLanes);
  }
  // Adds x times w.
  HWY_INLINE void add(float x, const Vectors& w) {
    PAGODA_UNROLL
    for (int i = 0; i < kVectors; ++i) v[i] = hn::MulAdd(hn::Set(D(), x), w.v[i], v[i]);
  }
};

// The numbers of one block of a panel's 16 columns: value = scale * code value + minimum.
struct BlockScale {
  float scale[kPanelColumns];
  float minimum[kPanelColumns];
};

HWY_INLINE std::uint32_t word_of(const std::byte* words, int line, int column) {
  std::uint32_t word;
  std::memcpy(&word, words + line * kLineBytes + 4 * column, sizeof(word));
  return word;
}

// Decodes one panel.
template <PanelKind kKind>
class UnitDecoder {
 public:
  static constexpr PanelFormat kFormat = panel_format(kKind);

  HWY_INLINE UnitDecoder(const PanelProduct& product, const std::byte* panel)
      : product_(product), panel_(panel), group_(panel + product.header_area) {}

  // Decodes the next 32 k. Returns them as [32, 16] in `memory`, or in the panel itself if it has
  // float32.
  HWY_INLINE const float* next(float* memory) {
    if constexpr (kKind == PanelKind::kF32) {
      const std::byte* unit = group_;
      group_ += kUnit * kLineBytes;
      return reinterpret_cast<const float*>(unit);
    } else {
      decode_codes(memory);
      scale_blocks(memory);
      advance();
      return memory;
    }
  }

 private:
  // Decodes the code values, unscaled. Planes are read pair by pair; the loop over pairs is not
  // unrolled.
  HWY_INLINE void decode_codes(float* memory) const {
    const DI di;
    const std::byte* low = group_ + kFormat.low_plane() + in_group_ * kFormat.low_bits * kLineBytes;
    const std::byte* high =
        group_ + kFormat.high_plane() + in_group_ * kFormat.high_bits * kLineBytes;
    for (int pair = 0; pair < kUnit / 2; ++pair) {
      for (int i = 0; i < kVectors; ++i) {
        for (int p = 0; p < 2; ++p) {
          auto code = field<kFormat.low_bits>(low, pair, p, i);
          if constexpr (kFormat.high_bits > 0) {
            code = hn::Or(
                code, hn::ShiftLeft<kFormat.low_bits>(field<kFormat.high_bits>(high, pair, p, i)));
          }
          float* to = memory + (2 * pair + p) * kPanelColumns + i * kLanes;
          hn::StoreU(value_of(di, code), D(), to);
        }
      }
    }
  }

  template <int kBits>
  HWY_INLINE static hn::Vec<DI> field(const std::byte* plane, int pair, int p, int vector) {
    constexpr int kCodes = 16 / kBits;
    const DI di;
    const auto* line = reinterpret_cast<const std::int32_t*>(plane + pair / kCodes * kLineBytes);
    const auto words = hn::LoadU(di, line + vector * kLanes);
    const int shift = 16 * p + kBits * (pair % kCodes);
    return hn::And(hn::ShiftRightSame(words, shift), hn::Set(di, (1 << kBits) - 1));
  }

  HWY_INLINE static V value_of(DI di, hn::Vec<DI> code) {
    if constexpr (has_levels(kKind)) {
      HWY_ALIGN std::int32_t codes[kLanes];
      HWY_ALIGN float values[kLanes];
      hn::Store(code, di, codes);
      for (int i = 0; i < kLanes; ++i) values[i] = static_cast<float>(code_value(kKind, codes[i]));
      return hn::Load(D(), values);
    } else if constexpr (kKind == PanelKind::kInt14) {
      return hn::ConvertTo(D(), hn::ShiftRight<16>(hn::ShiftLeft<16>(code)));
    } else if constexpr (kKind == PanelKind::kQ8_0) {
      return hn::ConvertTo(D(), hn::ShiftRight<24>(hn::ShiftLeft<24>(code)));
    } else {
      return hn::ConvertTo(D(), hn::Add(code, hn::Set(di, code_value(kKind, 0))));
    }
  }

  HWY_INLINE void scale_blocks(float* memory) const {
    constexpr int kBlock = kFormat.block < kUnit ? kFormat.block : kUnit;
    for (int block = 0; block < kUnit / kBlock; ++block) {
      HWY_ALIGN BlockScale numbers;
      read_numbers((in_group_ * kUnit + block * kBlock) / kFormat.block, numbers);
      Vectors scale, minimum;
      scale.load(numbers.scale);
      if constexpr (kFormat.has_minimum()) minimum.load(numbers.minimum);
      for (int k = 0; k < kBlock; ++k) {
        float* at = memory + (block * kBlock + k) * kPanelColumns;
        PAGODA_UNROLL
        for (int i = 0; i < kVectors; ++i) {
          auto value = hn::Mul(scale.v[i], hn::LoadU(D(), at + i * kLanes));
          if constexpr (kFormat.has_minimum()) value = hn::Add(value, minimum.v[i]);
          hn::StoreU(value, D(), at + i * kLanes);
        }
      }
    }
  }

  // Reads the scales and minima of block b of the group.
  HWY_INLINE void read_numbers(int b, BlockScale& numbers) const {
    constexpr int kHalves = 2 * kPanelColumns;
    Vectors first, second;
    if constexpr (kFormat.header == PanelHeader::kAffine) {
      const std::byte* header = panel_ + unit_ / product_.units_of_header * kLineBytes;
      if (product_.header_is_bfloat16) {
        first.load_bfloat16(header);
        second.load_bfloat16(header + kHalves);
      } else {
        first.load_halves(header);
        second.load_halves(header + kHalves);
      }
      first.store(numbers.scale);
      second.store(numbers.minimum);
      return;
    }
    if constexpr (kFormat.header == PanelHeader::kExponents) {
      const std::byte* exponents = panel_ + unit_ * kPanelColumns;
      for (int c = 0; c < kPanelColumns; ++c) {
        numbers.scale[c] = mxfp4_scale(static_cast<std::uint8_t>(exponents[c]));
      }
      return;
    }
    if constexpr (kFormat.header == PanelHeader::kPowers) {
      first.load(reinterpret_cast<const float*>(group_));
      first.store(numbers.scale);
      return;
    }
    first.load_halves(group_ + (kFormat.header == PanelHeader::kScales ? b * kHalves : 0));
    first.store(numbers.scale);
    if constexpr (kFormat.has_minimum()) {
      second.load_halves(group_ + kHalves);
      second.store(numbers.minimum);
    }
    if constexpr (kFormat.header == PanelHeader::kSixBit ||
                  kFormat.header == PanelHeader::kNibbles ||
                  kFormat.header == PanelHeader::kBytes) {
      for (int c = 0; c < kPanelColumns; ++c) {
        int scale = 0, minimum = 0;
        read_integers(b, c, scale, minimum);
        numbers.scale[c] *= static_cast<float>(scale);
        if constexpr (kFormat.has_minimum()) numbers.minimum[c] *= -static_cast<float>(minimum);
      }
    }
  }

  HWY_INLINE void read_integers(int b, int column, int& scale, int& minimum) const {
    const std::byte* integers = group_ + kLineBytes;
    if constexpr (kFormat.header == PanelHeader::kSixBit) {
      const auto of_block =
          six_bit_numbers(word_of(integers, 0, column), word_of(integers, 1, column),
                          word_of(integers, 2, column), b);
      scale = static_cast<int>(of_block.scale);
      minimum = static_cast<int>(of_block.minimum);
    } else {
      const auto byte = static_cast<int>(integers[b * kPanelColumns + column]);
      const bool is_nibbles = kFormat.header == PanelHeader::kNibbles;
      scale = is_nibbles ? byte & 15 : static_cast<std::int8_t>(byte);
      minimum = byte >> 4;
    }
  }

  HWY_INLINE void advance() {
    ++unit_;
    if (++in_group_ == kFormat.group / kUnit) {
      in_group_ = 0;
      group_ += kFormat.group_bytes();
    }
  }

  const PanelProduct& product_;
  const std::byte* panel_;
  const std::byte* group_;
  std::int64_t unit_ = 0;
  int in_group_ = 0;
};

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the target's pass
