// Transposes the keys of a tile, compiled for each target. A word of 32 bits is one float32 or two
// 16-bit elements, and the same word of all positions becomes adjacent. 16-bit elements stay as
// they are: half the shuffles and half the memory, and a shift or a mask makes them float32.
#if defined(PAGODA_TRANSPOSE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef PAGODA_TRANSPOSE_INL_H
#undef PAGODA_TRANSPOSE_INL_H
#else
#define PAGODA_TRANSPOSE_INL_H
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/half.h"
#include "hwy/highway.h"
#include "ops/attention/cpu/attention_items.h"
#include "ops/attention/cpu/attention_target-inl.h"

// Loops over registers must be unrolled: an array that is indexed at run time is kept in memory.
#undef PAGODA_UNROLL
#define PAGODA_UNROLL _Pragma("GCC unroll 16")

PAGODA_ATTENTION_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<float, 16>;
using DWords = hn::RebindToUnsigned<D>;
using V = hn::Vec<D>;
using VWords = hn::Vec<DWords>;
constexpr int kLanes = hn::MaxLanes(D());
constexpr int kTileVectors = kTilePositions / kLanes;

// Joins the first and third blocks of 128 bits of two vectors; odd_blocks() joins the second and
// fourth. Only AVX-512 has four blocks. Highway's functions take a shuffle and a blend more.
template <class VW>
HWY_INLINE VW even_blocks(VW a, VW b) {
  return VW{_mm512_shuffle_i32x4(a.raw, b.raw, 0x88)};
}
template <class VW>
HWY_INLINE VW odd_blocks(VW a, VW b) {
  return VW{_mm512_shuffle_i32x4(a.raw, b.raw, 0xdd)};
}

// Swaps rows and columns of blocks of 128 bits. Vectors 4 k to 4 k + 3 have keys 4 k to 4 k + 3.
// Within each block, transpose_fours() has transposed the words.
template <class DW>
HWY_INLINE void transpose_blocks(DW d, hn::Vec<DW>* rows) {
  if constexpr (hn::MaxLanes(d) == 8) {
    PAGODA_UNROLL
    for (int i = 0; i < 4; ++i) {
      const auto low = rows[i], high = rows[4 + i];
      rows[i] = hn::ConcatLowerLower(d, high, low);
      rows[4 + i] = hn::ConcatUpperUpper(d, high, low);
    }
  } else if constexpr (hn::MaxLanes(d) == 16) {
    PAGODA_UNROLL
    for (int i = 0; i < 4; ++i) {
      // Keys 0 to 3, 4 to 7, 8 to 11, 12 to 15.
      const auto a = rows[i], b = rows[4 + i], c = rows[8 + i], e = rows[12 + i];
      const auto ab = hn::ConcatLowerLower(d, b, a), ce = hn::ConcatLowerLower(d, e, c);
      const auto ab_high = hn::ConcatUpperUpper(d, b, a), ce_high = hn::ConcatUpperUpper(d, e, c);
      rows[i] = even_blocks(ab, ce);
      rows[4 + i] = odd_blocks(ab, ce);
      rows[8 + i] = even_blocks(ab_high, ce_high);
      rows[12 + i] = odd_blocks(ab_high, ce_high);
    }
  }
}

// Transposes rows i to i + 3 within blocks of 128 bits: a block of rows[i + w] becomes word w of
// that block in each of the four rows.
template <typename Load>
HWY_INLINE void transpose_fours(Load&& load, int i, VWords* rows) {
  const DWords d;
  const hn::Repartition<std::uint64_t, DWords> d64;
  const VWords a = load(i), b = load(i + 1), c = load(i + 2), e = load(i + 3);
  const auto ab_low = hn::BitCast(d64, hn::InterleaveLower(d, a, b));
  const auto ab_high = hn::BitCast(d64, hn::InterleaveUpper(d, a, b));
  const auto ce_low = hn::BitCast(d64, hn::InterleaveLower(d, c, e));
  const auto ce_high = hn::BitCast(d64, hn::InterleaveUpper(d, c, e));
  rows[i] = hn::BitCast(d, hn::InterleaveLower(d64, ab_low, ce_low));
  rows[i + 1] = hn::BitCast(d, hn::InterleaveUpper(d64, ab_low, ce_low));
  rows[i + 2] = hn::BitCast(d, hn::InterleaveLower(d64, ab_high, ce_high));
  rows[i + 3] = hn::BitCast(d, hn::InterleaveUpper(d64, ab_high, ce_high));
}

// Computes rows[w] = word w of kLanes keys; load(i) returns the words of key i. Calls meanwhile()
// for every 128 bytes.
template <typename Load, typename Meanwhile>
HWY_INLINE void transpose(Load&& load, VWords* rows, Meanwhile&& meanwhile) {
  PAGODA_UNROLL
  for (int i = 0; i < kLanes; i += 4) {
    transpose_fours(load, i, rows);
    for (int byte = 0; byte < 16 * kLanes; byte += 128) meanwhile();
  }
  transpose_blocks(DWords(), rows);
}

// Transposes kLanes words of each of kLanes keys, and stores them to the tile. key(i) points to the
// first word of key i.
template <typename Dots, typename Key, typename Meanwhile>
HWY_INLINE void transpose_words(Key&& key, std::uint32_t* tile, Meanwhile&& meanwhile) {
  VWords rows[kLanes];
  const auto load = [&](int i) {
    return hn::LoadU(DWords(), reinterpret_cast<const std::uint32_t*>(key(i)));
  };
  transpose(load, rows, meanwhile);
  PAGODA_UNROLL
  for (int i = 0; i < kLanes; ++i) {
    Dots::store_word(rows[i], tile + i * Dots::kTileWords * kTilePositions);
  }
}

// Transposes kLanes keys to a tile, in which a kind (Dots) has kTileWords words for each word of a
// key. keys + offsets[i]: key i; tile: the place of the first key's first word. Whole vectors of
// words are written.
template <typename Dots, typename Meanwhile>
HWY_INLINE void transpose_keys(const std::byte* keys, const std::int64_t* offsets,
                               std::int64_t num_bytes, std::uint32_t* tile, Meanwhile&& meanwhile) {
  constexpr std::int64_t kBytes = kLanes * sizeof(std::uint32_t);
  std::int64_t at = 0;
  for (; at + kBytes <= num_bytes;
       at += kBytes, tile += kLanes * Dots::kTileWords * kTilePositions) {
    transpose_words<Dots>([&](int i) { return keys + offsets[i] + at; }, tile, meanwhile);
  }
  if (at == num_bytes) return;
  HWY_ALIGN std::byte rest[kLanes * kBytes] = {};
  for (int i = 0; i < kLanes; ++i) {
    std::memcpy(rest + i * kBytes, keys + offsets[i] + at, num_bytes - at);
  }
  transpose_words<Dots>([&](int i) { return rest + i * kBytes; }, tile, meanwhile);
}

// Widens the elements of a word to float32, in memory's order: `first`, and `second` if there are
// two.
template <typename T>
struct Words;

template <>
struct Words<float> {
  static constexpr int kElements = 1;
  static HWY_INLINE V first(VWords words) { return hn::BitCast(D(), words); }
  static HWY_INLINE V second(VWords words) { return first(words); }
};

template <>
struct Words<bf16> {
  static constexpr int kElements = 2;
  static HWY_INLINE V first(VWords words) { return hn::BitCast(D(), hn::ShiftLeft<16>(words)); }
  static HWY_INLINE V second(VWords words) {
    return hn::BitCast(D(), hn::And(words, hn::Set(DWords(), 0xffff0000u)));
  }
};

template <>
struct Words<f16> {
  static constexpr int kElements = 2;
  static HWY_INLINE V first(VWords words) {
    const hn::Rebind<std::uint16_t, D> d16;
    const hn::Rebind<hwy::float16_t, D> half;
    const VWords low = hn::And(words, hn::Set(DWords(), 0xffffu));
    return hn::PromoteTo(D(), hn::BitCast(half, hn::TruncateTo(d16, low)));
  }
  static HWY_INLINE V second(VWords words) { return first(hn::ShiftRight<16>(words)); }
};

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the target's pass
