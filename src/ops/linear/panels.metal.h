// Reads panels of weights; backend/gpu/gpu_panels.h describes them. A lane owns a column of a
// panel.
//
// A format is four template arguments: its name, the bits of a code, the k of a group, and a type.
// The k of a group share a scale; in plain types they are one chain of products. The type is that
// of an Affine's scales, that of a plain type's values, uchar in MXFP4, and else half.
#ifndef PAGODA_PANELS_METAL_H
#define PAGODA_PANELS_METAL_H

#include "backend/gpu/kernel.metal.h"

// kHalves and kWords: how many 16-bit and 32-bit numbers a column's header has for each group, or
// for a whole super-block of 256 k. A group of MXFP4 has half of a 16-bit number. kZero: the code
// whose value is zero.
template <int kHalves, int kWords, int kZero, bool kIsSuper, bool kHasOffset, bool kHasLevels>
struct FormatTraits {
  static constexpr int halves() { return kHalves; }
  static constexpr int words() { return kWords; }
  static constexpr int zero() { return kZero; }
  static constexpr bool is_super() { return kIsSuper; }
  static constexpr bool has_offset() { return kHasOffset; }
  static constexpr bool has_levels() { return kHasLevels; }
};
struct F32 : FormatTraits<0, 0, 0, false, false, false> {};
struct F16 : FormatTraits<0, 0, 0, false, false, false> {};
struct BF16 : FormatTraits<0, 0, 0, false, false, false> {};
struct Q8_0 : FormatTraits<1, 0, 128, false, false, false> {};
struct Q4_0 : FormatTraits<1, 0, 8, false, false, false> {};
struct Q4_1 : FormatTraits<0, 1, 0, false, true, false> {};
struct Q5_0 : FormatTraits<1, 0, 16, false, false, false> {};
struct Q5_1 : FormatTraits<0, 1, 0, false, true, false> {};
struct Q2_K : FormatTraits<0, 5, 0, true, true, false> {};
struct Q3_K : FormatTraits<1, 3, 4, true, false, false> {};
struct Q4_K : FormatTraits<0, 4, 0, true, true, false> {};
struct Q5_K : FormatTraits<0, 4, 0, true, true, false> {};
struct Q6_K : FormatTraits<1, 4, 32, true, false, false> {};
struct IQ4_NL : FormatTraits<1, 0, 0, false, false, true> {};
struct IQ4_XS : FormatTraits<0, 2, 0, true, false, true> {};
struct MXFP4 : FormatTraits<1, 0, 0, false, false, true> {};
struct Affine : FormatTraits<0, 1, 0, false, true, false> {};

template <typename Name, int kBits, int kGroup, typename Number>
struct Panels {
  using Format = Name;
  using Scale = Number;
  static constexpr int bits() { return kBits; }
  static constexpr int group() { return kGroup; }
  static constexpr bool is_plain() { return kBits >= 16; }
  static constexpr int unit() { return Name::is_super() ? 256 : 128; }  // k
  // Returns how many bits of a code are in the low plane; the others are in the high plane.
  static constexpr int low() { return kBits >= 8 ? kBits : kBits >= 4 ? 4 : 2; }
  static constexpr int high() { return kBits - low(); }
  // Returns how many 16-bit (or 32-bit) numbers a column has in the header of a unit with `blocks`
  // blocks of 32 k.
  static constexpr int halves(int blocks) {
    if (sizeof(Number) == 1) return (blocks + 1) / 2;
    return Name::halves() * (Name::is_super() ? 1 : 32 * blocks / kGroup);
  }
  static constexpr int words(int blocks) {
    return Name::words() *
           (Name::is_super() ? 1 : 32 * blocks / kGroup * (int(sizeof(Number)) / 2));
  }
  // Returns where a part of the unit begins, in words.
  static constexpr int words_at(int blocks) {
    return Name::is_super() ? (16 * halves(blocks) + 31) / 32 * 32 : 16 * halves(blocks);
  }
  static constexpr int low_at(int blocks) { return words_at(blocks) + 32 * words(blocks); }
  static constexpr int high_at(int blocks) { return low_at(blocks) + 32 * low() * blocks; }
  static constexpr int unit_words() { return high_at(unit() / 32) + high() * unit(); }
};

// Returns the number whose encoding is the low 16 bits, or all 32.
template <typename T>
inline float number_of(uint bits);
template <>
inline float number_of<half>(uint bits) {
  return float(as_type<half>(ushort(bits & 0xffffu)));
}
template <>
inline float number_of<bfloat>(uint bits) {
  return as_type<float>(bits << 16);
}
// Returns MXFP4's power, 2^(exponent - 128). Some GPUs take the powers of exponents 0 and 1, which
// are subnormal numbers, as zero.
template <>
inline float number_of<uchar>(uint exponent) {
  return as_type<float>(exponent < 2 ? 0x200000u << exponent : (exponent - 1) << 23);
}
template <>
inline float number_of<float>(uint bits) {
  return as_type<float>(bits);
}

// Loads the first kCount words of a lane's part of a section. A section has pieces with four words
// per lane, and a last piece with fewer.
template <int kCount>
inline void load_words(device const uint* section, uint lane, thread uint* words) {
  constexpr int kRest = kCount % 4;
  constexpr int kWhole = kCount - kRest;
#pragma unroll
  for (int i = 0; i < kWhole; i += 4) {
    const uint4 piece = *(device const uint4*)(section + 32 * i + 4 * int(lane));
    words[i] = piece.x;
    words[i + 1] = piece.y;
    words[i + 2] = piece.z;
    words[i + 3] = piece.w;
  }
  if (kRest == 2) {
    const uint2 piece = *(device const uint2*)(section + 32 * kWhole + 2 * int(lane));
    words[kWhole] = piece.x;
    words[kWhole + 1] = piece.y;
  } else {
#pragma unroll
    for (int i = 0; i < kRest; ++i)
      words[kWhole + i] = section[32 * kWhole + kRest * int(lane) + i];
  }
}

// Returns word `i` of a lane's `count` words of a section.
inline uint word_at(device const uint* section, int count, uint lane, int i) {
  const int first = i / 4 * 4;
  const int width = min(count - first, 4);
  return section[32 * first + width * int(lane) + (i - first)];
}

// A column's header of a unit, as it lies in memory.
struct PanelHeader {
  uint halves[2];
  uint words[8];
};

// Loads a header of a unit of `blocks` blocks. Plain types have none.
template <typename P>
inline void load_header(device const uint* unit, int blocks, uint lane,
                        thread PanelHeader& header) {
  constexpr int kBlocks = P::unit() / 32;
  constexpr int kHalves = P::halves(kBlocks);
  constexpr int kWords = P::words(kBlocks);
  if (blocks == kBlocks) {
    if (kHalves > 0) load_words<kHalves / 2>(unit, lane, header.halves);
    if (kHalves == 1) header.halves[0] = ((device const ushort*)unit)[lane];
    if (kWords > 0) load_words<kWords>(unit + P::words_at(kBlocks), lane, header.words);
    return;
  }
  if (kHalves > 0) {
    const int count = P::halves(blocks);
    device const ushort* const halves = (device const ushort*)unit + count * int(lane);
    header.halves[0] = halves[0];
    header.halves[1] = 0;
    if (count > 1) header.halves[0] |= uint(halves[1]) << 16;
    if (count > 2) header.halves[1] = halves[2];
  }
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    header.words[i] = 0;
    if (i < P::words(blocks)) {
      header.words[i] = word_at(unit + P::words_at(blocks), P::words(blocks), lane, i);
    }
  }
}

// Returns word `first + i` of a header, i < 4. It selects registers, and indexes no memory.
inline uint select_word(thread const uint* words, int first, int i) {
  const uint even = (i & 2) != 0 ? words[first + 2] : words[first];
  const uint odd = (i & 2) != 0 ? words[first + 3] : words[first + 1];
  return (i & 1) != 0 ? odd : even;
}

// The numbers of group `g` of a unit: value = scale * code + offset.
struct GroupNumbers {
  float scale;
  float offset;
};

// Returns a group's numbers from a header that has only scales.
template <typename Number>
inline GroupNumbers numbers_of_scale(thread const PanelHeader& header, int g) {
  GroupNumbers numbers;
  const uint pair = (g & 2) != 0 ? header.halves[1] : header.halves[0];
  numbers.scale = number_of<half>((g & 1) != 0 ? pair >> 16 : pair);
  numbers.offset = 0;
  return numbers;
}
// Returns a group's numbers from a header that has a scale and a minimum or bias for each group, in
// one word or in two.
template <typename Number>
inline GroupNumbers numbers_of_pair(thread const PanelHeader& header, int g) {
  GroupNumbers numbers;
  if (sizeof(Number) == 4) {
    const int half_of = g / 2;
    const uint scale_low = select_word(header.words, 0, 2 * (g & 1));
    const uint scale_high = select_word(header.words, 4, 2 * (g & 1));
    const uint offset_low = select_word(header.words, 0, 2 * (g & 1) + 1);
    const uint offset_high = select_word(header.words, 4, 2 * (g & 1) + 1);
    numbers.scale = as_type<float>(half_of != 0 ? scale_high : scale_low);
    numbers.offset = as_type<float>(half_of != 0 ? offset_high : offset_low);
    return numbers;
  }
  const uint word = select_word(header.words, 0, g);
  numbers.scale = number_of<Number>(word & 0xffffu);
  numbers.offset = number_of<Number>(word >> 16);
  return numbers;
}
// Returns a super-block's scale times a group's integer, and minus its minimum scale times another
// integer. Both products are exact.
inline GroupNumbers numbers_of_integers(uint scale, int integer, uint minimum_scale, int minimum) {
  GroupNumbers numbers;
  numbers.scale = number_of<half>(scale) * float(integer);
  numbers.offset = -(number_of<half>(minimum_scale) * float(minimum));
  return numbers;
}

template <typename Number>
inline GroupNumbers group_numbers(F32, thread const PanelHeader&, int) {
  GroupNumbers numbers;
  numbers.scale = 1;
  numbers.offset = 0;
  return numbers;
}
template <typename Number>
inline GroupNumbers group_numbers(F16, thread const PanelHeader& header, int g) {
  return group_numbers<Number>(F32(), header, g);
}
template <typename Number>
inline GroupNumbers group_numbers(BF16, thread const PanelHeader& header, int g) {
  return group_numbers<Number>(F32(), header, g);
}
template <typename Number>
inline GroupNumbers group_numbers(Q8_0, thread const PanelHeader& header, int g) {
  return numbers_of_scale<Number>(header, g);
}
template <typename Number>
inline GroupNumbers group_numbers(Q4_0, thread const PanelHeader& header, int g) {
  return numbers_of_scale<Number>(header, g);
}
template <typename Number>
inline GroupNumbers group_numbers(Q5_0, thread const PanelHeader& header, int g) {
  return numbers_of_scale<Number>(header, g);
}
template <typename Number>
inline GroupNumbers group_numbers(IQ4_NL, thread const PanelHeader& header, int g) {
  return numbers_of_scale<Number>(header, g);
}
template <typename Number>
inline GroupNumbers group_numbers(MXFP4, thread const PanelHeader& header, int g) {
  const uint pair = (g & 2) != 0 ? header.halves[0] >> 16 : header.halves[0];
  GroupNumbers numbers;
  numbers.scale = number_of<Number>(((g & 1) != 0 ? pair >> 8 : pair) & 255u);
  numbers.offset = 0;
  return numbers;
}
template <typename Number>
inline GroupNumbers group_numbers(Q4_1, thread const PanelHeader& header, int g) {
  return numbers_of_pair<Number>(header, g);
}
template <typename Number>
inline GroupNumbers group_numbers(Q5_1, thread const PanelHeader& header, int g) {
  return numbers_of_pair<Number>(header, g);
}
template <typename Number>
inline GroupNumbers group_numbers(Affine, thread const PanelHeader& header, int g) {
  return numbers_of_pair<Number>(header, g);
}
template <typename Number>
inline GroupNumbers group_numbers(Q2_K, thread const PanelHeader& header, int g) {
  const uint byte = select_word(header.words, 0, g / 4) >> (8 * (g % 4));
  return numbers_of_integers(header.words[4] & 0xffffu, int(byte & 15u), header.words[4] >> 16,
                             int(byte >> 4 & 15u));
}
template <typename Number>
inline GroupNumbers group_numbers(Q3_K, thread const PanelHeader& header, int g) {
  const uint low = (g < 8 ? header.words[0] : header.words[1]) >> (4 * (g % 8)) & 15u;
  const uint high = header.words[2] >> (2 * g) & 3u;
  return numbers_of_integers(header.halves[0], int(low | high << 4) - 32, 0, 0);
}
template <typename Number>
inline GroupNumbers group_numbers(Q4_K, thread const PanelHeader& header, int g) {
  const uint scale = (header.words[1] >> (4 * g) & 15u) | (header.words[3] >> (2 * g) & 3u) << 4;
  const uint minimum = (header.words[2] >> (4 * g) & 15u) | (header.words[3] >> (2 * g + 16) & 3u)
                                                                << 4;
  return numbers_of_integers(header.words[0] & 0xffffu, int(scale), header.words[0] >> 16,
                             int(minimum));
}
template <typename Number>
inline GroupNumbers group_numbers(Q5_K, thread const PanelHeader& header, int g) {
  return group_numbers<Number>(Q4_K(), header, g);
}
template <typename Number>
inline GroupNumbers group_numbers(Q6_K, thread const PanelHeader& header, int g) {
  const uint byte = select_word(header.words, 0, g / 4) >> (8 * (g % 4)) & 255u;
  return numbers_of_integers(header.halves[0], int(byte ^ 128u) - 128, 0, 0);
}
template <typename Number>
inline GroupNumbers group_numbers(IQ4_XS, thread const PanelHeader& header, int g) {
  const uint low = header.words[1] >> (4 * g) & 15u;
  const uint high = header.words[0] >> (2 * g + 16) & 3u;
  return numbers_of_integers(header.words[0] & 0xffffu, int(low | high << 4) - 32, 0, 0);
}

// Returns signed byte `i` of four words.
inline float level_of_words(thread const uint* words, uint i) {
  const uint byte = select_word(words, 0, int(i / 4)) >> (8 * (i % 4)) & 255u;
  return float(int(byte ^ 128u) - 128);
}
// Returns level `i` of a format whose codes are indices in a table: IQ4_NL and IQ4_XS, or MXFP4.
template <typename Name>
inline float level_of(Name, uint i) {
  const uint words[4] = {0xbfad9881u, 0xf6eaddcfu, 0x26190d01u, 0x71594535u};
  return level_of_words(words, i);
}
inline float level_of(MXFP4, uint i) {
  const uint words[4] = {0x03020100u, 0x0c080604u, 0xfdfeff00u, 0xf4f8fafcu};
  return level_of_words(words, i);
}

// Loads the codes of block `b` of 32 k. In plain types the unit may end inside the block, after
// `num_k` k: codes beyond are zero, and pieces beyond are not in memory.
template <typename P>
inline void load_block(device const uint* unit, int blocks, int b, int num_k, uint lane,
                       thread uint* low, thread uint* high) {
  constexpr int kLow = P::low();
  constexpr int kHigh = P::high();
  device const uint* const lows = unit + P::low_at(blocks);
  if (kLow == 2) {
    low[0] = word_at(lows, 2 * blocks, lane, 2 * b);
    low[1] = word_at(lows, 2 * blocks, lane, 2 * b + 1);
  } else if (!P::is_plain() || num_k >= 32) {
    load_words<kLow>(lows + 32 * kLow * b, lane, low);
  } else {
#pragma unroll
    for (int i = 0; i < kLow; ++i) {
      low[i] = 0;
      if (i / 4 * 128 < num_k * kLow) {
        low[i] = lows[32 * (kLow * b + i / 4 * 4) + 4 * int(lane) + i % 4];
      }
    }
  }
#pragma unroll
  for (int i = 0; i < kHigh; ++i) {
    high[i] = word_at(unit + P::high_at(blocks), kHigh * blocks, lane, kHigh * b + i);
  }
}

// Returns the value of code `k` of a block under a scale of one. If `k` is a compile-time constant,
// and the words are in registers, that costs a mask and a subtraction. The masked bits, the lowest
// at `place`, are put into the mantissa of the float 2^(23 - place). The float grows by the code's
// value, and the subtraction takes 2^(23 - place) away. levels: level_of(), if the format has
// them.
template <typename P>
inline float code_number(thread const uint* low, thread const uint* high, int k,
                         threadgroup const float* levels) {
  constexpr int kLow = P::low();
  constexpr int kHigh = P::high();
  if (kLow == 32) return as_type<float>(low[k]);
  constexpr int kPerWord = 32 / kLow;
  const int i = k / kPerWord;
  const int j = k % kPerWord;
  if (kLow == 16) {
    const uint word = low[i];
    return number_of<typename P::Scale>(j != 0 ? word >> 16 : word);
  }
  if (P::Format::has_levels()) return levels[low[i] >> (kLow * j) & 15u];
  constexpr int kInPlace = (23 - P::bits()) / kLow + 1;  // codes of a word below its bit 23
  constexpr int kShift = kLow * kInPlace;
  const bool is_shifted = j >= kInPlace;
  const int place = kLow * (is_shifted ? j - kInPlace : j);
  uint bits = (is_shifted ? low[i] >> kShift : low[i]) & ((1u << kLow) - 1) << place;
  if (kHigh > 0) {
    constexpr int kSlots =
        kHigh > 0 ? kLow / kHigh : 1;  // words of the low plane for one of the high plane
    const uint word = high[i / kSlots];
    const int slot = kHigh * (i % kSlots);
    const uint top = is_shifted ? word >> (slot + kShift - kLow) : word << (kLow - slot);
    bits |= top & ((1u << kHigh) - 1) << (place + kLow);
  }
  const float above = float(1 << (23 - place));
  return as_type<float>(bits | uint(150 - place) << 23) - (above + float(P::Format::zero()));
}

#endif  // PAGODA_PANELS_METAL_H
