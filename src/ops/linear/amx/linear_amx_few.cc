// The products on AMX of rows that are too few for its tiles, in the same arithmetic
// (amx/group_numbers-inl.h). AVX-512's dot products read panels without unpacking them.
//
// A block's sum has up to 31 bits, and up to 43 when it is multiplied by its factor. So its two
// halves are multiplied separately, in dot products of 16-bit numbers. A carry makes the lower half
// signed.
//
// Codes of four to eight bits are multiplied with the bytes of x instead, four k at a time. With
// plain nibbles the sums of half units have 16 bits, so one dot product multiplies two of them by
// their factor.
#include <immintrin.h>

#include "ops/linear/amx/group_numbers-inl.h"
#include "ops/linear/amx/linear_amx.h"
#include "ops/linear/avx512/few_rows_block-inl.h"
#include "ops/linear/avx512/prefetch-inl.h"
#include "ops/linear/avx512/tile_loops-inl.h"

namespace pagoda::cpu {
namespace {

constexpr int kRowBytes = 2 * kUnit;
constexpr int kSplitRowBytes = 4 * kUnit;
constexpr int kSteps = kUnit / 2;  // pairs of k of a unit

// Sums of blocks times their factors: high * 2^16 + low, for nibbles high * 2^8 + low, for short
// products (high + low) * 2^8.
template <int kRows>
struct ScaledSums {
  __m512i high[kRows];
  __m512i low[kRows];
};

PAGODA_INLINE void add_scaled(__m512i sum, __m512i factor, __m512i& high, __m512i& low) {
  const __m512i carried = _mm512_add_epi32(sum, _mm512_set1_epi32(1 << 15));
  high = _mm512_dpwssd_epi32(high, carried, _mm512_slli_epi32(factor, 16));
  low = _mm512_dpwssd_epi32(low, sum, _mm512_and_si512(factor, _mm512_set1_epi32(0xffff)));
}

template <PanelKind kKind, int kRows>
class FewRows {
 public:
  // Multiplies a tile of rows with a panel. Not inlined: it takes all registers.
  __attribute__((noinline)) static void multiply(const PanelProduct& product,
                                                 std::int64_t first_row, std::int64_t panel) {
    const Reader reader;
    const std::byte* const at = product.panels + panel * product.panel_bytes;
    const std::int64_t num_groups = kPanel.num_groups(product.cols);
    __m512 sums[kRows][1];
    set_to_zero(sums);
    for (std::int64_t first = 0; first < num_groups; first += Format::kGroupsInPanel) {
      const std::int64_t left = num_groups - first;
      const auto count =
          static_cast<int>(left < Format::kGroupsInPanel ? left : Format::kGroupsInPanel);
      GroupIntegers<kKind> numbers;
      read_group(product, at, first, count, numbers);
      const GroupRows rows =
          rows_of_group<kRows>(product, first_row, first / Format::kGroupsInPanel);
      ScaledSums<kRows> scaled;
      for_all<kRows>(
          [&](auto r) PAGODA_FLATTEN { scaled.high[r] = scaled.low[r] = _mm512_setzero_si512(); });
      const std::byte* group = at + product.header_area + first * kPanel.group_bytes();
      const int num_units = count * kUnitsOfPanelGroup;
      for (int unit = 0; unit < num_units; ++unit) {
        const int in_group = unit % kUnitsOfPanelGroup;
        add_unit(reader, {group, in_group, product.prefetch}, unit, rows, numbers, scaled);
        if (in_group + 1 == kUnitsOfPanelGroup) group += kPanel.group_bytes();
      }
      __m512 exact[kRows][1];
      for_all<kRows>(
          [&](auto r) PAGODA_FLATTEN { exact[r][0] = whole_sum(scaled.high[r], scaled.low[r]); });
      add_exact<kKind, kRows>(numbers, rows, num_units, exact, sums);
    }
    store_sums<kRows, 1>(sums, product, first_row, panel);
  }

 private:
  using Format = GroupFormat<kKind>;
  using Reader = PairReader<kKind, Format::kMiddle>;
  using Block = FewRowsBlock<kKind, kRows, Format::kMiddle>;
  static constexpr PanelFormat kPanel = Format::kPanel;
  static constexpr bool kIsNibbles = has_plain_nibbles(kKind);
  static constexpr int kWords = kUnit / 4;                 // four k each
  static constexpr int kPlaneBytes = kPlaneDepth * kRows;  // of x
  static constexpr int kUnitsOfPanelGroup = kPanel.group / kUnit;
  static constexpr int kUnitBytes = kPanel.group_bytes() / kUnitsOfPanelGroup;
  static constexpr int kLines = (kUnitBytes + kLineBytes - 1) / kLineBytes;  // of a unit
  static constexpr int kUnitsOfFactor = kPanel.block > kUnit ? kPanel.block / kUnit : 1;
  static constexpr int kFactorsOfUnit = kPanel.block < kUnit ? kUnit / kPanel.block : 1;

  // Returns the sum of a scaled sum's two halves, without the bits that are cut off.
  PAGODA_INLINE static __m512 whole_sum(__m512i high, __m512i low) {
    if constexpr (Format::kPlanes == 3) return rounded(high, low);
    if constexpr (!is_short(kKind)) {
      low = _mm512_srai_epi32(low, Format::kCutBits);
      high = _mm512_slli_epi32(high, (kIsNibbles ? 8 : 16) - Format::kCutBits);
    }
    return _mm512_cvtepi32_ps(_mm512_add_epi32(high, low));
  }

  // Adds unit `index` of the 256 k. `unit` is its place in the panel's group.
  PAGODA_INLINE static void add_unit(const Reader& reader, const UnitsAt& unit, int index,
                                     const GroupRows& rows, const GroupIntegers<kKind>& numbers,
                                     ScaledSums<kRows>& scaled) {
    if constexpr (meets_bytes(kKind)) return add_bytes(unit, index, rows, numbers, scaled);
    if constexpr (is_short(kKind)) {
      return add_short(unit, rows.x + index * kRows * kSplitRowBytes,
                       numbers.factors[index / kUnitsOfFactor], scaled);
    }
    const std::byte* x = rows.x + index * kRows * kRowBytes;
    constexpr int kStepsOfBlock = kSteps / kFactorsOfUnit;
    const std::byte* low =
        unit.group + kPanel.low_plane() + unit.first * kPanel.low_bits * kLineBytes;
    const std::byte* high =
        unit.group + kPanel.high_plane() + unit.first * kPanel.high_bits * kLineBytes;
    for_all<kFactorsOfUnit>([&](auto block) PAGODA_FLATTEN {
      Block sums(rows.block_sums + index * kRows);
      for_all<(block + 1) * kStepsOfBlock, block * kStepsOfBlock>([&](auto step) PAGODA_FLATTEN {
        constexpr int kStep = decltype(step)::kValue;
        // Lines are prefetched one by one: a burst would delay the loads after it.
        prefetch_ahead<kKind, kLines * kStep / kSteps, kLines*(kStep + 1) / kSteps>(
            unit.group + unit.first * kUnitBytes, unit.prefetch);
        sums.template add<kStep>(reader, low, high, x, kRowBytes);
      });
      add_block(sums, numbers.factors[index * kFactorsOfUnit + block], scaled);
    });
  }

  // Adds a unit whose codes are multiplied with bytes of x.
  PAGODA_INLINE static void add_bytes(const UnitsAt& unit, int index, const GroupRows& rows,
                                      const GroupIntegers<kKind>& numbers,
                                      ScaledSums<kRows>& scaled) {
    constexpr int kUnitsOfPlane = kPlaneDepth / kUnit;
    const BytesAt at = {
        .low = unit.group + kPanel.low_plane() + unit.first * kPanel.low_bits * kLineBytes,
        .high = unit.group + kPanel.high_plane() + unit.first * kPanel.high_bits * kLineBytes,
        .x = rows.x + index / kUnitsOfPlane * 2 * kPlaneBytes + index % kUnitsOfPlane * kUnit,
        .offsets = rows.offsets + index * kRows * kOffsetsOfUnit};
    const auto fetch = [&](auto word) PAGODA_FLATTEN {
      prefetch_ahead<kKind, kLines * word / kWords, kLines*(word + 1) / kWords>(
          unit.group + unit.first * kUnitBytes, unit.prefetch);
    };
    const __m512i* const factors = numbers.factors + index * kFactorsOfUnit / kUnitsOfFactor;
    __m512i of_halves[kRows][2];
    // Both planes of x are multiplied at once if all sums fit in the registers.
    constexpr int kAtOnce = kRows <= 4 ? 2 : 1;
    for_all<2 / kAtOnce>([&](auto pass) PAGODA_FLATTEN {
      constexpr int kFirst = pass * kAtOnce;
      __m512i sums[kAtOnce][kRows][2];
      multiply_bytes<kFirst>(at, fetch, sums);
      for_all<kAtOnce>([&](auto plane) PAGODA_FLATTEN {
        constexpr bool kIsHigh = kFirst + plane == 0;
        for_all<kRows>([&](auto r) PAGODA_FLATTEN {
          const auto& halves = sums[plane][r];
          if constexpr (kIsNibbles) {
            __m512i& to = kIsHigh ? scaled.high[r] : scaled.low[r];
            to = _mm512_dpwssd_epi32(to, pair_of_words(halves[0], halves[1]),
                                     both_halves(factors[0]));
          } else {
            for_all<2>([&](auto half) PAGODA_FLATTEN {
              __m512i& to = of_halves[r][half];
              to =
                  kIsHigh ? _mm512_slli_epi32(halves[half], 8) : _mm512_add_epi32(to, halves[half]);
            });
          }
        });
      });
    });
    if constexpr (!kIsNibbles) {
      for_all<kRows>([&](auto r) PAGODA_FLATTEN {
        auto& [first, second] = of_halves[r];
        if constexpr (kFactorsOfUnit == 1) {
          add_scaled(_mm512_add_epi32(first, second), factors[0], scaled.high[r], scaled.low[r]);
        } else {
          add_scaled(first, factors[0], scaled.high[r], scaled.low[r]);
          add_scaled(second, factors[1], scaled.high[r], scaled.low[r]);
        }
      });
    }
  }

  // The bytes of a unit: codes, and x of the first row.
  struct BytesAt {
    const std::byte* low;
    const std::byte* high;
    const std::byte* x;
    const std::int32_t* offsets;
  };

  // Multiplies kPlanes planes of x, from kFirst on, with a unit's codes, and sums each half unit.
  // Calls fetch(word) for each word of the unit, but only with the first plane.
  template <int kFirst, int kPlanes, class Fetch>
  PAGODA_INLINE static void multiply_bytes(const BytesAt& at, const Fetch& fetch,
                                           __m512i (&sums)[kPlanes][kRows][2]) {
    for_all<kPlanes * kRows>([&](auto i) PAGODA_FLATTEN {
      constexpr int kPlane = i / kRows, kRow = i % kRows;
      const std::int32_t* offsets = at.offsets + kRow * kOffsetsOfUnit + 2 * (kFirst + kPlane);
      for_all<2>([&](auto half) PAGODA_FLATTEN {
        sums[kPlane][kRow][half] =
            code_offset(kKind) == 0 ? _mm512_setzero_si512() : _mm512_set1_epi32(offsets[half]);
      });
    });
    for_all<kWords>([&](auto word) PAGODA_FLATTEN {
      if constexpr (kFirst == 0) fetch(word);
      const __m512i codes = code_bytes<kKind, decltype(word)::kValue>(at.low, at.high);
      for_all<kPlanes * kRows>([&](auto i) PAGODA_FLATTEN {
        constexpr int kPlane = i / kRows, kRow = i % kRows;
        const std::byte* x = at.x + (kFirst + kPlane) * kPlaneBytes + kRow * kPlaneDepth + 4 * word;
        __m512i& sum = sums[kPlane][kRow][2 * word / kWords];
        sum = _mm512_dpbusd_epi32(sum, codes, broadcast_word(x));
      });
    });
  }

  // Adds a unit of short products. The loop is not unrolled fully: with separate instructions for
  // each line, weights were read a tenth slower.
  PAGODA_INLINE static void add_short(const UnitsAt& unit, const std::byte* x, __m512i factor,
                                      ScaledSums<kRows>& scaled) {
    constexpr int kStepsAtOnce = 8;
    const __m512i factors = both_halves(factor);
    const std::byte* line =
        unit.group + kPanel.low_plane() + unit.first * kPanel.low_bits * kLineBytes;
    if (unit.first == 0) prefetch_ahead<kKind, 0, 1>(unit.group, unit.prefetch);
#pragma GCC unroll 1
    for (int step = 0; step < kSteps; step += kStepsAtOnce) {
      for_all<kStepsAtOnce>([&](auto at) PAGODA_FLATTEN {
        prefetch_ahead<kKind, at, at + 1>(line, unit.prefetch);
        const __m512i weights = _mm512_mullo_epi16(load_line(line + at * kLineBytes), factors);
        const __m512i high_bytes = _mm512_srai_epi16(weights, 8);
        for_all<kRows>([&](auto r) PAGODA_FLATTEN {
          const std::byte* high = x + r * kSplitRowBytes + 4 * at;
          const __m512i x1 = broadcast_word(high), x0 = broadcast_word(high + 2 * kUnit);
          scaled.high[r] = _mm512_dpwssd_epi32(scaled.high[r], weights, x1);
          scaled.low[r] = _mm512_dpwssd_epi32(scaled.low[r], high_bytes, x0);
        });
      });
      line += kStepsAtOnce * kLineBytes;
      x += kStepsAtOnce * 2 * sizeof(std::int16_t);
    }
  }

  PAGODA_INLINE static void add_block(const Block& sums, __m512i factor,
                                      ScaledSums<kRows>& scaled) {
    for_all<kRows>([&](auto r) PAGODA_FLATTEN {
      add_scaled(sums.sum(r), factor, scaled.high[r], scaled.low[r]);
    });
  }
};

template <PanelKind kKind, int kRows>
void multiply_tiles(const PanelProduct& product, std::int64_t begin, std::int64_t end) {
  for (std::int64_t panel = begin; panel < end; ++panel) {
    for (std::int64_t row = 0; row < product.num_rows; row += kRows) {
      FewRows<kKind, kRows>::multiply(product, row, panel);
    }
  }
}

template <PanelKind kKind>
void multiply_kind(const PanelProduct& product, std::int64_t begin, std::int64_t end) {
  switch (product.tile_rows) {
    case 1:
      return multiply_tiles<kKind, 1>(product, begin, end);
    case 2:
      return multiply_tiles<kKind, 2>(product, begin, end);
    case 4:
      return multiply_tiles<kKind, 4>(product, begin, end);
    default:
      return multiply_tiles<kKind, 6>(product, begin, end);
  }
}

}  // namespace

namespace amx {

void multiply_few(const PanelProduct& product, std::int64_t begin, std::int64_t end) {
  with_kind(product.kind, [&](auto kind) {
    constexpr PanelKind kKind = decltype(kind)::kValue;
    if constexpr (kKind != PanelKind::kF32) multiply_kind<kKind>(product, begin, end);
  });
}

}  // namespace amx
}  // namespace pagoda::cpu
