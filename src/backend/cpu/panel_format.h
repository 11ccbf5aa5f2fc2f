// How a panel of each format lies in memory, as the kernels read it.
//
// A panel is 16 rows of the checkpoint's matrix (output columns of the product) side by side, k in
// order. It is divided into groups of k; a group is
//
//   header | low plane | high plane                          every part whole lines of 64 bytes
//
// A plane holds `bits` bits of each code. A line has one 32-bit word per column; word c of line i
// has the codes of the 32 / bits consecutive k from 32 / bits * i on:
//
//   k = 32 / bits * i + 2 * j + p   lies at bit 16 * p + bits * j
//
// So a shift by bits * j leaves the pair (k, k + 1) of all 16 columns at the bottom of 32
// half-words. The pairwise dot products of 16-bit numbers read it there (vdpbf16ps, vpdpwssd,
// vpmaddwd), and the same words serve 32-bit lanes. Codes of five bits have four bits in the low
// plane and one in the high plane; codes of six have four and two; codes of three, two and one.
//
//             group   header                                                          planes
//   F32       1                                                                       32
//   F16, BF16 64      power float32 [16]                                              16, signed
//   Q8_0      64      scales f16 [2][16]                                              8
//   Q4_0      64      scales f16 [2][16]                                              4
//   IQ4_NL    64      scales f16 [2][16]                                              4
//   Q5_0      64      scales f16 [2][16]                                              4, 1
//   Q4_1      32      scales f16 [16], minima f16 [16]                                4
//   Q5_1      32      scales f16 [16], minima f16 [16]                                4, 1
//   Q4_K      256     scale f16 [16], minimum scale f16 [16], six-bit words [3][16]   4
//   Q5_K      256     the same                                                        4, 1
//   Q2_K      256     scale, minimum scale f16 [16], scale | minimum << 4 u8 [16][16] 2
//   Q3_K      256     scale f16 [16], 32 bytes free, scales int8 [16][16]             2, 1
//   Q6_K      256     scale f16 [16], 32 bytes free, scales int8 [16][16]             4, 2
//   IQ4_XS    256     scale f16 [16], 32 bytes free, scales int8 [8][16]              4
//   MXFP4     32      none here: all exponents stand before the panel's planes, u8 [16]
//                     a block, four blocks a line                                     4
//   affine    32      none here: all headers stand before the panel's planes, one a
//                     group of the checkpoint, scales [16] and biases [16] in 16 bits 2, 2 1, 4 ...
//
// F16 and BF16 become integers of 14 bits; each 64 k share a scale that is a power of two. The
// power's exponent is the largest value's minus 12. But the power is at least a quarter of the
// largest power of its 256 k. So a kernel may multiply the integers by one, two or four and use one
// power for all 256. Integers multiply as fast as bfloat16 and keep four more bits of x.
//
// A BF16 value is exact if it is at least 1/32 of the largest of its 64 values; an F16 value, if it
// is at least 1/4. Where the 256 k decide the power, the bounds are 1/128 and 1/16 of their largest
// value. Other values have an error of at most 2^-13 of the largest of the 64, or 2^-15 of the
// largest of the 256.
//
// A line before a panel's first group has the least power that each column may have: 2^-48 of the
// column's largest power, so that kernels can add exponents instead of multiplying. It is NaN in a
// column with a weight that is not finite.
//
// The six-bit words of a column:
//
//   word 0   scales of blocks b = 0 to 4 at bit 6 b; at bit 30 the high two of block 7's scale
//   word 1   minima of blocks b = 0 to 4 at bit 6 b; at bit 30 the high two of block 7's minimum
//   word 2   scales of blocks 5 and 6 at bits 0 and 6, their minima at bits 12 and 18; the low four
//            bits of block 7's scale at bit 24, and those of its minimum at bit 28
//
// The last group is padded with zeros if the matrix ends inside it; its scales are zero there, too.
#pragma once

#include <cstdint>
#include <utility>

#include "quant/iq4_nl.h"
#include "quant/mxfp4.h"
#include "quant/weight_format.h"

namespace pagoda::cpu {

inline constexpr int kPanelColumns = 16;
inline constexpr int kLineBytes = 64;
// The powers of one column of 14-bit integers differ by a factor of 2^kPowersRange at most.
inline constexpr int kPowersRange = 48;
// The powers of a column within kPowersSpan k differ by a factor of kPowersRangeOfSpan at most.
inline constexpr int kPowersSpan = 256;
inline constexpr int kPowersRangeOfSpan = 4;
// The number of k that kernels process at a time. Rows of x are padded to an even number of units.
inline constexpr int kUnit = 32;

enum class PanelKind : std::uint8_t {
  kF32,
  kInt14,  // F16 and BF16
  kQ8_0,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kIQ4_NL,
  kIQ4_XS,
  kMXFP4,
  kAffine2,
  kAffine3,
  kAffine4,
  kAffine5,
  kAffine6,
  kAffine8,
};

inline constexpr int kNumPanelKinds = static_cast<int>(PanelKind::kAffine8) + 1;

// A kind as a compile-time constant. with_kind() calls visit(KindConstant<kind>()).
template <PanelKind kKind>
struct KindConstant {
  static constexpr PanelKind kValue = kKind;
};
template <class Visit, int... kKinds>
__attribute__((always_inline)) inline void with_kind_of(PanelKind kind, const Visit& visit,
                                                        std::integer_sequence<int, kKinds...>) {
  (void)((kind == static_cast<PanelKind>(kKinds) &&
          (visit(KindConstant<static_cast<PanelKind>(kKinds)>()), true)) ||
         ...);
}
template <class Visit>
__attribute__((always_inline)) inline void with_kind(PanelKind kind, const Visit& visit) {
  with_kind_of(kind, visit, std::make_integer_sequence<int, kNumPanelKinds>());
}

// How a group's header stores scales and minima.
enum class PanelHeader : std::uint8_t {
  kNone,
  kPowers,        // a float32 power of two
  kScales,        // a scale per block
  kScalesMinima,  // a scale and a minimum
  kSixBit,        // Q4_K and Q5_K
  kNibbles,       // Q2_K
  kBytes,         // Q3_K, Q6_K, IQ4_XS
  kExponents,     // MXFP4
  kAffine,
};

struct PanelFormat {
  int group = 1;  // number of k
  int block = 1;  // number of k that share a scale
  PanelHeader header = PanelHeader::kNone;
  int header_bytes = 0;
  int low_bits = 0;
  int high_bits = 0;

  constexpr int code_bits() const { return low_bits + high_bits; }
  constexpr bool has_minimum() const {
    return header == PanelHeader::kScalesMinima || header == PanelHeader::kSixBit ||
           header == PanelHeader::kNibbles || header == PanelHeader::kAffine;
  }
  constexpr int plane_bytes(int bits) const { return group * bits * kPanelColumns / 8; }
  constexpr int low_plane() const { return header_bytes; }  // the plane's offset in the group
  constexpr int high_plane() const { return header_bytes + plane_bytes(low_bits); }
  constexpr int group_bytes() const { return high_plane() + plane_bytes(high_bits); }
  constexpr std::int64_t num_groups(std::int64_t cols) const { return (cols + group - 1) / group; }
};

constexpr PanelFormat panel_format(PanelKind kind) {
  constexpr PanelFormat kScaled = {
      .group = 64, .block = 32, .header = PanelHeader::kScales, .header_bytes = 64};
  constexpr PanelFormat kShifted = {
      .group = 32, .block = 32, .header = PanelHeader::kScalesMinima, .header_bytes = 64};
  constexpr PanelFormat kSixBit = {
      .group = 256, .block = 32, .header = PanelHeader::kSixBit, .header_bytes = 256};
  constexpr PanelFormat kAffine = {.group = 32, .block = 32, .header = PanelHeader::kAffine};
  const auto with_bits = [](PanelFormat format, int low, int high = 0) {
    format.low_bits = low;
    format.high_bits = high;
    return format;
  };
  switch (kind) {
    case PanelKind::kF32:
      return {.group = 1, .low_bits = 32};
    case PanelKind::kInt14:
      return {.group = 64,
              .block = 64,
              .header = PanelHeader::kPowers,
              .header_bytes = 64,
              .low_bits = 16};
    case PanelKind::kQ8_0:
      return with_bits(kScaled, 8);
    case PanelKind::kQ4_0:
    case PanelKind::kIQ4_NL:
      return with_bits(kScaled, 4);
    case PanelKind::kQ5_0:
      return with_bits(kScaled, 4, 1);
    case PanelKind::kQ4_1:
      return with_bits(kShifted, 4);
    case PanelKind::kQ5_1:
      return with_bits(kShifted, 4, 1);
    case PanelKind::kQ4_K:
      return with_bits(kSixBit, 4);
    case PanelKind::kQ5_K:
      return with_bits(kSixBit, 4, 1);
    case PanelKind::kQ2_K:
      return {.group = 256,
              .block = 16,
              .header = PanelHeader::kNibbles,
              .header_bytes = 320,
              .low_bits = 2};
    case PanelKind::kQ3_K:
    case PanelKind::kQ6_K:
      return {.group = 256,
              .block = 16,
              .header = PanelHeader::kBytes,
              .header_bytes = 320,
              .low_bits = kind == PanelKind::kQ3_K ? 2 : 4,
              .high_bits = kind == PanelKind::kQ3_K ? 1 : 2};
    case PanelKind::kIQ4_XS:
      return {.group = 256,
              .block = 32,
              .header = PanelHeader::kBytes,
              .header_bytes = 192,
              .low_bits = 4};
    case PanelKind::kMXFP4:
      return {.group = 32, .block = 32, .header = PanelHeader::kExponents, .low_bits = 4};
    case PanelKind::kAffine2:
      return with_bits(kAffine, 2);
    case PanelKind::kAffine3:
      return with_bits(kAffine, 2, 1);
    case PanelKind::kAffine4:
      return with_bits(kAffine, 4);
    case PanelKind::kAffine5:
      return with_bits(kAffine, 4, 1);
    case PanelKind::kAffine6:
      return with_bits(kAffine, 4, 2);
    case PanelKind::kAffine8:
      return with_bits(kAffine, 8);
  }
  return {};
}

// Returns whether codes are indices in a table of levels.
constexpr bool has_levels(PanelKind kind) {
  return kind == PanelKind::kIQ4_NL || kind == PanelKind::kIQ4_XS || kind == PanelKind::kMXFP4;
}

// Returns the value that a code stands for under a scale of one.
constexpr int code_value(PanelKind kind, int code) {
  switch (kind) {
    case PanelKind::kQ8_0:
      return code < 128 ? code : code - 256;
    case PanelKind::kQ4_0:
      return code - 8;
    case PanelKind::kQ5_0:
      return code - 16;
    case PanelKind::kQ3_K:
      return code - 4;
    case PanelKind::kQ6_K:
      return code - 32;
    case PanelKind::kIQ4_NL:
    case PanelKind::kIQ4_XS:
      return kIq4Levels[code & 15];
    case PanelKind::kMXFP4:
      return kMxfp4Levels[code & 15];
    default:
      return code;
  }
}

// Returns the lowest level of a format for which has_levels() is true.
constexpr int lowest_level(PanelKind kind) {
  int lowest = 0;
  for (int code = 0; code < 16; ++code) {
    if (code_value(kind, code) < lowest) lowest = code_value(kind, code);
  }
  return lowest;
}

}  // namespace pagoda::cpu
