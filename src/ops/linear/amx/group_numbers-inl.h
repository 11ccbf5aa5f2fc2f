// The arithmetic of the products on AMX: the sum over 256 k of a row and a column is one integer.
//
// 256 k of x share a scale (avx512/tile-inl.h describes super tiles). So do 256 k of weights: a
// weight is its group's scale times its block's factor times its code; factor and code are
// integers. So
//
//   exact = sum over 256 k of x * factor * code                       an integer of up to 43 bits
//   sums += scale of x * (scale * float(exact) + sum of minima times x)
//
// Tiles multiply factors by codes before x, and few rows multiply a block's sum by its factor. Both
// have the same bits, because `exact` is rounded only once. If weights have two bytes, its lowest
// bits are cut off first, so that 31 are left: at most 8 of 39. Sums are stored from a tile once
// per 256 k; storing them once per block would take as long as the products.
//
// F16 and BF16 have short products (T. Mulders, On short multiplications and divisions, 2000). x is
// 256 * x1 + x0 and a weight is 256 * w1 + w0, where all four integers but w0 are signed. The
// product of x0 and w0 is left out: that is 5e-5 of a usual sum, and saves one tile product of
// four. Few rows compute x1 * weight + x0 * w1. Formats of fewer bits have exact products, with
// which their codes are read faster.
//
// The factors of K-quants and IQ4_XS are the integer scales of the format. Other formats have float
// scales: these become factors of 12 bits times a power of two. A scale in f16 within a factor of
// two of its group's largest stays exact. Others are off by at most 2^-13 of the largest. F16 and
// BF16 have the factors 1, 2 and 4 (backend/cpu/panel_format.h); those of MXFP4 are powers of two up
// to 2^11.
#pragma once

#include <immintrin.h>

#include "ops/linear/avx512/group_numbers-inl.h"
#include "ops/linear/avx512/minima-inl.h"
#include "ops/linear/avx512/super-inl.h"
#include "ops/linear/avx512/tile-inl.h"
#include "ops/linear/unrolled-inl.h"

namespace pagoda::cpu {
namespace {

constexpr int kUnitsOfGroup = kSuperGroup / kUnit;

// Returns the number that is subtracted from all codes of a format. It is the middle code if there
// are float minima, which become small by that; else it is 0.
constexpr int middle_of_group(PanelKind kind) {
  const PanelFormat format = panel_format(kind);
  return format.has_minimum() && !is_super(kind) ? 1 << (format.code_bits() - 1) : 0;
}

// Returns whether products of few rows use codes as unsigned bytes.
constexpr bool meets_bytes(PanelKind kind) {
  return panel_format(kind).low_bits == 4 || panel_format(kind).low_bits == 8;
}
// Returns the number that is added to codes to make them unsigned bytes.
constexpr int code_offset(PanelKind kind) {
  return meets_bytes(kind) ? byte_offset(kind) + middle_of_group(kind) : 0;
}

// Returns the largest magnitude of the codes that are multiplied with x.
constexpr int largest_code(PanelKind kind) {
  if (kind == PanelKind::kInt14) return 8191;
  int largest = 0;
  for (int code = 0; code < 1 << panel_format(kind).code_bits(); ++code) {
    const int value = code_value(kind, code) - middle_of_group(kind);
    if (value > largest) largest = value;
    if (-value > largest) largest = -value;
  }
  return largest;
}

// Returns whether a format has short products (above).
constexpr bool is_short(PanelKind kind) {
  return kind == PanelKind::kInt14;
}

// Returns the largest magnitude of integer scales of blocks.
constexpr int largest_integer_scale(PanelHeader header) {
  if (header == PanelHeader::kBytes) return 128;
  return header == PanelHeader::kNibbles ? 15 : 63;
}

// Returns by how many bits an exact sum of 256 k may be longer than 31 bits.
constexpr int bits_above_31(std::int64_t largest_weight) {
  int bits = 0;
  while ((kSuperGroup * kPlanesLargest * largest_weight) >> bits > 0x7fffffff) ++bits;
  return bits;
}

// How a format's weights become integers.
template <PanelKind kKind>
struct GroupFormat {
  static constexpr PanelFormat kPanel = panel_format(kKind);
  static constexpr bool kIsSuper = is_super(kKind);
  static constexpr bool kHasPowers = kPanel.header == PanelHeader::kPowers;
  static constexpr bool kHasFloatMinima = kPanel.has_minimum() && !kIsSuper;
  static constexpr int kMiddle = middle_of_group(kKind);
  static constexpr int kGroupsInPanel = kSuperGroup / kPanel.group;  // the panel's groups in 256 k
  static constexpr int kFactors = kSuperGroup / kPanel.block;
  static constexpr int kFactorBits = kHasPowers ? 3 : 12;  // if factors are made from float scales
  static constexpr int kLargestFactor =                    // of these
      kHasPowers                                 ? 4
      : kPanel.header == PanelHeader::kExponents ? 1 << (kFactorBits - 1)
                                                 : (1 << kFactorBits) - 1;
  static constexpr int kPlanes =  // of bytes; weights of K-quants have 13 bits
      kIsSuper || largest_code(kKind) * kLargestFactor <= 32767 ? 2 : 3;
  static constexpr int kCutBits =  // of exact sums
      kIsSuper       ? bits_above_31(largest_code(kKind) * largest_integer_scale(kPanel.header))
      : kPlanes == 2 ? 8
                     : 0;
};

// The numbers of 256 k of a panel, for 16 columns.
template <PanelKind kKind>
struct GroupIntegers {
  using Format = GroupFormat<kKind>;
  static constexpr int kMinima = Format::kIsSuper ? SuperNumbers<kKind>::kMinima : 0;

  __m512i factors[Format::kFactors];          // 32 bits
  __m512 scale;                               // of exact sums without the bits that are cut off
  __m512i minima[kMinima > 0 ? kMinima : 1];  // as in SuperNumbers, if they are integers
  __m512 minimum;                             // the scale of integer minima
  __m512 float_minima[Format::kHasFloatMinima ? kUnitsOfGroup : 1];
};

PAGODA_INLINE __m512 power_of_two(__m512i stored_exponent) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(stored_exponent, kMantissaBits));
}

// Makes integer factors from a group's float scales.
template <PanelKind kKind, int kCount>
PAGODA_INLINE void make_factors(const __m512 (&scales)[kCount], GroupIntegers<kKind>& to) {
  constexpr int kBits = GroupFormat<kKind>::kFactorBits;
  // Magnitudes compare as their bits do, and NaN is above all numbers.
  __m512i largest = _mm512_castps_si512(_mm512_abs_ps(scales[0]));
  for_all<kCount - 1>([&](auto i) PAGODA_FLATTEN {
    largest = _mm512_max_epu32(largest, _mm512_castps_si512(_mm512_abs_ps(scales[i + 1])));
  });
  // The exponents with their bias. The least one is such that the powers below are normal numbers;
  // smaller scales lose bits.
  const __m512i exponent =
      _mm512_max_epi32(_mm512_srli_epi32(largest, kMantissaBits), _mm512_set1_epi32(kBits + 3));
  const __m512 inverse =
      power_of_two(_mm512_sub_epi32(_mm512_set1_epi32(254 + kBits - 1), exponent));
  for_all<kCount>([&](auto i) PAGODA_FLATTEN {
    to.factors[i] = _mm512_cvtps_epi32(_mm512_mul_ps(scales[i], inverse));
  });
  const __m512 scale = power_of_two(_mm512_sub_epi32(exponent, _mm512_set1_epi32(kBits - 1)));
  to.scale = _mm512_fmadd_ps(_mm512_castsi512_ps(largest), _mm512_setzero_ps(), scale);
}

// Reads the numbers of 256 k, from group `first` of a panel on. The panel ends after `num_groups`
// groups; numbers beyond are zero.
template <PanelKind kKind>
PAGODA_INLINE void read_group(const PanelProduct& product, const std::byte* panel,
                              std::int64_t first, int num_groups, GroupIntegers<kKind>& to) {
  using Format = GroupFormat<kKind>;
  const std::byte* group = panel + product.header_area + first * Format::kPanel.group_bytes();
  if constexpr (Format::kIsSuper) {
    SuperNumbers<kKind> numbers;
    read_super(group, numbers);
    for_all<Format::kFactors>([&](auto b) PAGODA_FLATTEN { to.factors[b] = numbers.scales[b]; });
    for_all<GroupIntegers<kKind>::kMinima>(
        [&](auto i) PAGODA_FLATTEN { to.minima[i] = numbers.minima[i]; });
    to.scale = numbers.scale;
    if constexpr (Format::kPanel.has_minimum()) to.minimum = numbers.minimum;
  } else if constexpr (Format::kHasPowers) {
    __m512 powers[Format::kFactors];
    for_all<Format::kFactors>([&](auto i) PAGODA_FLATTEN {
      const std::byte* power = group + i * Format::kPanel.group_bytes();
      powers[i] = i < num_groups ? _mm512_castsi512_ps(load_line(power)) : _mm512_setzero_ps();
    });
    make_factors(powers, to);
  } else {
    constexpr int kBlocks = Format::kFactors / Format::kGroupsInPanel;
    __m512 scales[Format::kFactors];
    for_all<Format::kGroupsInPanel>([&](auto i) PAGODA_FLATTEN {
      GroupNumbers<kKind> numbers[1];
      for_all<kBlocks>([&](auto b) PAGODA_FLATTEN { numbers[0].scales[b] = _mm512_setzero_ps(); });
      numbers[0].minima[0] = _mm512_setzero_ps();
      if (i < num_groups) {
        read_panels(product, panel, group + i * Format::kPanel.group_bytes(), first + i, numbers);
      }
      for_all<kBlocks>([&](auto b)
                           PAGODA_FLATTEN { scales[kBlocks * i + b] = numbers[0].scales[b]; });
      if constexpr (Format::kHasFloatMinima) {
        to.float_minima[i] = minima_of<kKind, Format::kMiddle>(numbers[0]);
      }
    });
    make_factors(scales, to);
  }
  if constexpr (Format::kCutBits > 0) {
    to.scale = _mm512_mul_ps(to.scale, _mm512_set1_ps(1 << Format::kCutBits));
  }
}

// Returns high * 2^16 + low, a number of up to 43 bits. It is rounded once, because both terms of
// the last sum are exact.
PAGODA_INLINE __m512 rounded(__m512i high, __m512i low) {
  high = _mm512_add_epi32(high, _mm512_srai_epi32(low, 16));
  low = _mm512_and_si512(low, _mm512_set1_epi32(0xffff));
  const __m512i rest = _mm512_and_si512(high, _mm512_set1_epi32(3));
  low = _mm512_or_si512(low, _mm512_slli_epi32(rest, 16));
  return _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_srai_epi32(high, 2)), _mm512_set1_ps(1 << 18),
                         _mm512_cvtepi32_ps(low));
}

// The numbers of a tile's rows for a group, from one row on.
struct GroupRows {
  const std::byte* x = nullptr;           // of the tile's first row
  const std::byte* sums = nullptr;        // [words of blocks' sums][rows of the tile]
  const std::int32_t* offsets = nullptr;  // [units][rows of the tile][4] (avx512/tile-inl.h)
  const float* block_sums = nullptr;      // [blocks][rows of the tile], if blocks have 32 k
  const float* scales = nullptr;          // [rows]
};

template <int kTileRows>
PAGODA_INLINE GroupRows rows_of_group(const PanelProduct& product, std::int64_t first_row,
                                      std::int64_t g) {
  const SuperView tile = super_view_of(product.tiles + first_row / kTileRows * product.tile_bytes,
                                       product.layout, kTileRows, product.cols);
  const SuperRows rows = rows_of<kTileRows>(tile, product.layout, g);
  const float* sums = block_sums_of(tile, product.layout, kTileRows, product.cols);
  const std::int64_t row = first_row % kTileRows;
  const std::int64_t unit = g * kUnitsOfGroup * kTileRows;
  const std::int32_t* offsets = offsets_of(tile, product.layout, kTileRows, product.cols);
  return {rows.x, rows.sums + 4 * row, offsets + (unit + row) * kOffsetsOfUnit, sums + unit + row,
          rows.scales + row};
}

// Adds a group's exact sums, in float, to the products of kRows rows.
template <PanelKind kKind, int kTileRows, int kRows>
PAGODA_INLINE void add_exact(const GroupIntegers<kKind>& numbers, const GroupRows& rows,
                             int num_units, __m512 (&exact)[kRows][1], __m512 (&sums)[kRows][1]) {
  using Integers = GroupIntegers<kKind>;
  if constexpr (Integers::Format::kHasFloatMinima) {
    for_all<kRows>([&](auto r)
                       PAGODA_FLATTEN { exact[r][0] = _mm512_mul_ps(exact[r][0], numbers.scale); });
    for_all<kUnitsOfGroup>([&](auto b) PAGODA_FLATTEN {
      if (b >= num_units) return;
      for_all<kRows>([&](auto r) PAGODA_FLATTEN {
        const __m512 sum = _mm512_set1_ps(rows.block_sums[b * kTileRows + r]);
        exact[r][0] = _mm512_fmadd_ps(numbers.float_minima[b], sum, exact[r][0]);
      });
    });
    for_all<kRows>([&](auto r) PAGODA_FLATTEN {
      sums[r][0] = _mm512_fmadd_ps(exact[r][0], _mm512_set1_ps(rows.scales[r]), sums[r][0]);
    });
  } else {
    const auto minima = [&](auto i, auto) PAGODA_FLATTEN { return numbers.minima[i]; };
    add_group<Integers::kMinima, kTileRows>({rows.x, rows.sums, rows.scales}, {numbers.scale},
                                            {numbers.minimum}, minima, exact, sums);
  }
}

}  // namespace
}  // namespace pagoda::cpu
