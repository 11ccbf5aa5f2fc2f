// Panels: the layout of a weight in a GPU's memory. Weights stay quantised as in their file.
//
// A panel is 32 rows of the checkpoint's matrix, output columns of the product, side by side; a
// lane of a SIMD group owns a column. k is in order, in units of 128 k, or 256 k for super-blocks;
// the last unit may have fewer blocks of 32 k. For plain types the last unit ends where the matrix
// does, padded to 16 bytes per column.
//
//   panel | unit | unit | ... | last unit
//   unit  | halves | words | low plane | high plane |
//
//   halves      n numbers of 16 bits per column: n c .. n c + n - 1 for column c. For super-blocks
//               they are padded to lines of 128 bytes, so that pieces begin at lines: 64 bytes per
//               unit of Q3_K (1.8 %) and of Q6_K (1 %)
//   words       n words per column, in pieces
//   low plane   the low 2, 4, 8, 16 or 32 bits of the codes: as many words per column for 32 k, in
//               pieces
//   high plane  the other bits of codes of 3 (2 and 1), 5 (4 and 1) and 6 (4 and 2)
//
// Pieces: a piece has four words of each of the 32 columns, column by column. It is 512 bytes that
// a SIMD group reads at once, 16 bytes per lane. If a column's number of words is not a multiple of
// 4, the last piece has the remaining words of each column.
//
//   word 0 .. 3 of column 0 | of column 1 | ... | of column 31 | word 4 .. 7 of column 0 | ...
//
// One shift moves the high bits of codes above all low bits of a word. In a block, the bits of the
// code for k = 32 / b * i + j are at:
//
//   low plane of b bits    word i            at bit b * j
//   high plane of h bits   word i / (b / h)  at bit b * j + h * (i % (b / h))
//
//             unit  halves       words                                              planes
//   F32       128                                                                   32
//   F16, BF16 128                                                                   16
//   Q8_0      128   scale [4]                                                       8 (q + 128)
//   Q4_0      128   scale [4]                                                       4
//   IQ4_NL    128   scale [4]                                                       4
//   Q5_0      128   scale [4]                                                       4, 1
//   Q4_1      128                scale | minimum << 16 [4]                          4
//   Q5_1      128                scale | minimum << 16 [4]                          4, 1
//   Q2_K      256                bytes of scale | minimum << 4 [4 words],           2
//                                d | dmin << 16
//   Q3_K      256   d            scales' low 4 bits [2], high 2 bits [1]            2, 1 (q + 4)
//   Q4_K      256                d | dmin << 16, scales' low 4 bits, minima's,      4
//                                high 2 bits of scales and << 16 of minima
//   Q5_K      256                the same                                           4, 1
//   Q6_K      256   d            scales' bytes [4]                                  4, 2 (q + 32)
//   IQ4_XS    256                d | scales' high 2 bits << 16, their low 4 bits    4
//   MXFP4     128   exponents: bytes in [2]                                         4
//   affine    128                scale | bias << 16 a group; of float32 numbers,    2, 2 1, 4, 4 1,
//                                scale, bias                                        4 2, 8
//
// Small integers are packed from the lowest bit up. The integer of group g is at:
//
//   4 bits  at bit 4 g
//   2 bits  at bit 2 g
//   a byte  at bit 8 (g % 4) of word g / 4
//
// Integers with a sign are as in the file: Q3_K's and IQ4_XS's scales plus 32, Q6_K's in two's
// complement. Columns that are missing in the last panel are all zeros, with zeros as scales.
//
// ops/linear/panels.metal.h reads them. Thread-safe.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "quant/host_tensor.h"

namespace pagoda::gpu {

inline constexpr int kPanelColumns = 32;

// The properties that decide the layout of a matrix's panels, and which kernels read them.
struct PanelFormat {
  WeightFormat format = WeightFormat::kF32;
  AffineLayout affine = {};  // only for kAffine

  bool operator==(const PanelFormat&) const = default;

  bool is_plain() const { return traits_of(format).block_size == 1 && !is_affine(); }
  bool is_affine() const { return format == WeightFormat::kAffine; }
  bool is_super() const { return !is_affine() && traits_of(format).block_size == 256; }
  bool has_offset() const;

  int bits() const;   // bits of a code
  int group() const;  // number of k with one scale; for plain types, of one chain of a product
  int unit() const { return is_super() ? 256 : 128; }  // number of k
  int low_bits() const { return bits() >= 8 ? bits() : bits() >= 4 ? 4 : 2; }
  int high_bits() const { return bits() - low_bits(); }
  int zero() const;  // the code of zero
  // Returns how many numbers of 16 bits a column has in the header of a unit of `num_k`; words():
  // how many words.
  int halves(int num_k) const;
  int words(int num_k) const;
  // Returns where the words of a unit begin: after the halves of all columns.
  int words_begin(int num_k) const;
  // Returns how many words all columns of a unit of `num_k` take.
  std::int64_t unit_words(int num_k) const;
};

PanelFormat panel_format_of(const HostTensor& matrix);

// Returns how many words a panel takes.
std::int64_t panel_words(const PanelFormat& format, std::int64_t cols);

// Writes row `row` of the matrix into a column of a panel.
void pack_column(const HostTensor& matrix, std::int64_t row, int column, std::uint32_t* panel);

// Decodes a column of a panel: `cols` values, as the format's scalar codec decodes them.
void unpack_column(const PanelFormat& format, const std::uint32_t* panel, std::int64_t cols,
                   int column, float* values);

// Returns the format as template arguments of kernels: "Q4_K", "4", "32", "half". The strings live
// as long as the process.
std::vector<std::string_view> template_arguments(const PanelFormat& format);

}  // namespace pagoda::gpu
