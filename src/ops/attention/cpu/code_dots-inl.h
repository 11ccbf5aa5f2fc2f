// The cpu attention's inner loops on codes, compiled for each target. A tile of keys, or of values,
// is widened to pairs of 16-bit integers. Their products with queries, or weights, are summed in 32
// bits. code_scales-inl.h has the arithmetic. Sums are exact, so their order is free.
#if defined(PAGODA_CODE_DOTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef PAGODA_CODE_DOTS_INL_H
#undef PAGODA_CODE_DOTS_INL_H
#else
#define PAGODA_CODE_DOTS_INL_H
#endif

#include <algorithm>
#include <bit>
#include <cstring>

#include "hwy/highway.h"
#include "ops/attention/cpu/attention_kernels-inl.h"
#include "ops/attention/cpu/code_scales-inl.h"
#include "ops/attention/cpu/float_dots-inl.h"
#include "ops/attention/cpu/pair_sums-inl.h"

PAGODA_ATTENTION_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Returns sums + the products of both halves, in one instruction if kHasVnni. Intrinsics would make
// the compiler copy and spill the sums, so x86 has assembly. On AVX2, 12 of 16 registers hold sums,
// so there is room for one product at a time.
template <bool kHasVnni>
HWY_INLINE VInts dot_shorts(VInts sums, VWords a, VWords b) {
#if PAGODA_HAS_PAIR_DOTS
  asm("vpdpwssd %2, %1, %0" : "+v"(sums.raw) : "v"(a.raw), "v"(b.raw));
  return sums;
#elif HWY_TARGET == HWY_AVX2
  if constexpr (kHasVnni) {
    asm("%{vex%} vpdpwssd %2, %1, %0" : "+x"(sums.raw) : "x"(a.raw), "x"(b.raw));
    return sums;
  }
  VInts products;
  asm("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0"
      : "+x"(sums.raw), "=&x"(products.raw)
      : "x"(a.raw), "x"(b.raw));
  return sums;
#else
  const DInts ints;
  const DShorts shorts;
  VInts second = hn::Zero(ints);
  const VInts first = hn::ReorderWidenMulAccumulate(ints, hn::BitCast(shorts, a),
                                                    hn::BitCast(shorts, b), hn::Zero(ints), second);
  return hn::Add(sums, hn::RearrangeToOddPlusEven(first, second));
#endif
}

// Widens words of codes to pairs. int8: bytes 0 and 2, then bytes 1 and 3. int4: the same of the
// low nibbles, then of the high nibbles.
template <KvFormat kFormat>
HWY_INLINE void widen_word(VWords words, VWords* pairs) {
  const DWords d;
  const DShorts shorts;
  if constexpr (kFormat == KvFormat::kInt8) {
    const auto bytes = hn::BitCast(shorts, words);
    pairs[0] = hn::BitCast(d, hn::ShiftRight<8>(hn::ShiftLeft<8>(bytes)));
    pairs[1] = hn::BitCast(d, hn::ShiftRight<8>(bytes));
  } else {
    const VWords nibble = hn::Set(d, 0x000f000fu);
    pairs[0] = hn::And(words, nibble);
    pairs[1] = hn::And(hn::ShiftRight<8>(words), nibble);
    pairs[2] = hn::And(hn::ShiftRight<4>(words), nibble);
    pairs[3] = hn::And(hn::ShiftRight<12>(words), nibble);
  }
}

// The number of vectors that kChunkBytes of two entries become. For int4, the second two vectors
// are of the second half of the dimensions.
template <KvFormat kFormat>
constexpr int kChunkVectors = kFormat == KvFormat::kInt4 ? 4 : 2;
constexpr int kChunkBytes = 2 * kLanes;

// Makes pairs of two positions' values. Each block of 128 bits has four dimensions. The first
// vector has the even groups of four dimensions, the second vector the odd groups.
template <KvFormat kFormat>
HWY_INLINE void pair_values(const std::byte* even, const std::byte* odd, VWords* pairs) {
  const DWords d;
  if constexpr (kFormat == KvFormat::kInt8) {
    const DShorts shorts;
    const hn::Rebind<std::int8_t, DShorts> bytes;
    const auto load = [&](const std::byte* from) HWY_ATTR {
      return hn::PromoteTo(shorts, hn::LoadU(bytes, reinterpret_cast<const std::int8_t*>(from)));
    };
    const auto a = load(even), b = load(odd);
    pairs[0] = hn::BitCast(d, hn::InterleaveLower(shorts, a, b));
    pairs[1] = hn::BitCast(d, hn::InterleaveUpper(shorts, a, b));
  } else {
    const hn::RebindToUnsigned<DShorts> shorts;
    const hn::Rebind<std::uint8_t, DShorts> bytes;
    const auto load = [&](const std::byte* from) HWY_ATTR {
      return hn::PromoteTo(shorts, hn::LoadU(bytes, reinterpret_cast<const std::uint8_t*>(from)));
    };
    const auto a = load(even), b = load(odd);
    const VWords low = hn::BitCast(d, hn::InterleaveLower(shorts, a, b));
    const VWords high = hn::BitCast(d, hn::InterleaveUpper(shorts, a, b));
    const VWords nibble = hn::Set(d, 0x000f000fu);
    pairs[0] = hn::And(low, nibble);
    pairs[1] = hn::And(high, nibble);
    pairs[2] = hn::ShiftRight<4>(hn::AndNot(nibble, low));
    pairs[3] = hn::ShiftRight<4>(hn::AndNot(nibble, high));
  }
}

template <KvFormat kKeys, KvFormat kValues, bool kHasVnni = PAGODA_HAS_PAIR_DOTS != 0>
struct CodeDots {
  using Coding = CodeCoding<kKeys, kValues>;
  using ScoreScales = typename Coding::ScoreScales;
  using DSum = DInts;
  using Session = NoSession;
  static constexpr bool kMultipliesTiles = false;
  using Unit = std::uint32_t;             // a unit of a query: a pair of integers
  static constexpr int kDimsPerUnit = 1;  // dimensions of a prepared query
  static constexpr int kUnitsPerWord = 1;
  static constexpr int kPositions = 2;
  using Ahead = TileAhead;
  static constexpr bool kFetchesRuns = false;
  static constexpr bool kFetchesTiles = true;

  static HWY_INLINE auto load_units(const float* units, float /*factor*/) {
    const hn::CappedTag<Unit, 4> d4;
    return hn::LoadU(d4, reinterpret_cast<const Unit*>(units));
  }
  static HWY_INLINE Unit unit(const float* units, std::int64_t count, float /*factor*/) {
    return count > 0 ? std::bit_cast<Unit>(*units) : 0;
  }

  static constexpr int kTileWords = Coding::kTileWords;
  static HWY_INLINE void store_word(VWords words, std::uint32_t* to) {
    VWords pairs[kTileWords];
    widen_word<kKeys>(words, pairs);
    PAGODA_UNROLL
    for (int i = 0; i < kTileWords; ++i) hn::StoreU(pairs[i], DWords(), to + i * kTilePositions);
  }

  using Operand = VWords;
  static HWY_INLINE VWords operand(VWords words, int /*unit*/) { return words; }
  static HWY_INLINE VWords broadcast(Unit pair) { return hn::Set(DWords(), pair); }
  static HWY_INLINE VInts multiply(VInts sum, VWords x, VWords y) {
    return dot_shorts<kHasVnni>(sum, x, y);
  }
  static HWY_INLINE V score_of(VInts sum, const typename ScoreScales::Positions& positions,
                               const ScoreScales& scales, int row) {
    return scales.score_of(sum, positions, row);
  }

  // A tile's values of one head as pairs of positions. All dimensions of a pair are adjacent.
  class Values {
   public:
    static std::int64_t floats(const AttentionCall& call) {
      return kTilePositions / 2 * call.padded_dim();
    }
    Values(const AttentionCall& call, float* memory)
        : call_(call), pairs_(reinterpret_cast<std::uint32_t*>(memory)) {}

    void load(const std::byte* entries, const std::int64_t* offsets, Visible positions,
              TileAhead& /*lines*/) {
      const std::int64_t padded_dim = call_.padded_dim(), bytes = call_.values.entry_bytes;
      const std::int64_t whole = bytes / kChunkBytes * kChunkBytes;
      for (int p = positions.begin / 2 * 2; p < positions.end; p += 2) {
        std::uint32_t* const to = pairs_ + p % kTilePositions / 2 * padded_dim;
        const std::byte* const even = p >= positions.begin ? entries + offsets[p] : nullptr;
        const std::byte* const odd = p + 1 < positions.end ? entries + offsets[p + 1] : nullptr;
        if (HWY_LIKELY(even && odd)) {
          for (std::int64_t at = 0; at < whole; at += kChunkBytes)
            store_chunk(even + at, odd + at, to + at);
          if (whole != bytes) store_rest(even, odd, whole, to);
          continue;
        }
        for (std::int64_t at = 0; at < bytes; at += kChunkBytes) store_rest(even, odd, at, to);
      }
    }

    // The product of a code and a weight of 0 is always 0.
    static constexpr bool kAreFinite = true;
    static constexpr bool are_finite(Visible /*positions*/) { return true; }

    template <int kRows>
    HWY_INLINE void add(const WeighedRows& rows, Visible positions, TileAhead& lines) const {
      if (positions.begin >= positions.end) return;
      const std::uint32_t* pairs =
          pairs_ + positions.begin % kTilePositions / 2 * call_.padded_dim();
      const auto* weights =
          reinterpret_cast<const std::uint32_t*>(rows.weights) + positions.begin / 2;
      add_pairs<CodeDots, kRows>({.pairs = pairs,
                                  .weights = weights,
                                  .count = (positions.end - positions.begin) / 2,
                                  .padded_dim = call_.padded_dim()},
                                 rows.sums, lines);
    }

   private:
    // Stores the pairs of a chunk. to: the place of its first dimension.
    HWY_INLINE void store_chunk(const std::byte* even, const std::byte* odd,
                                std::uint32_t* to) const {
      VWords pairs[kChunkVectors<kValues>];
      pair_values<kValues>(even, odd, pairs);
      hn::StoreU(pairs[0], DWords(), to);
      hn::StoreU(pairs[1], DWords(), to + kLanes);
      if constexpr (kValues == KvFormat::kInt4) {
        hn::StoreU(pairs[2], DWords(), to + call_.padded_dim() / 2);
        hn::StoreU(pairs[3], DWords(), to + call_.padded_dim() / 2 + kLanes);
      }
    }
    // Does the same from byte `at` of entries that end within the chunk, or are null.
    HWY_NOINLINE void store_rest(const std::byte* even, const std::byte* odd, std::int64_t at,
                                 std::uint32_t* to) const {
      std::byte rest[2][kChunkBytes] = {};
      const auto count = static_cast<std::size_t>(
          std::min<std::int64_t>(call_.values.entry_bytes - at, kChunkBytes));
      if (even) std::memcpy(rest[0], even + at, count);
      if (odd) std::memcpy(rest[1], odd + at, count);
      store_chunk(rest[0], rest[1], to + at);
    }

    const AttentionCall& call_;
    std::uint32_t* pairs_;  // [kTilePositions / 2, padded_dim]
  };
};

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the target's pass
