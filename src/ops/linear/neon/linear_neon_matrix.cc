// The cpu product's byte matrix products on AArch64 with the i8mm extension (Armv8.6-A).
//
// smmla multiplies two rows of eight bytes by two columns of eight bytes. The two rows here are the
// high and the low bytes of one row of x. So any number of rows has the layout that sdot takes. An
// instruction does 16 products of a 16-bit x. Sums are exact, so the bits are those of sdot and
// smlal.
//
// This file is compiled for one instruction set, so it uses only its own functions: an inline
// function of a shared header could be linked into code that runs on every machine.
#include "ops/linear/neon/codes-inl.h"

namespace pagoda::cpu {
namespace {

// Eight k of four columns: pair[0] has the first two columns, and pair[1] the last two.
struct ColumnPairs {
  int8x16_t pair[2];
};

template <PanelKind kKind>
struct MatrixBlockSum {
  static constexpr int kEightsOfBlock = panel_format(kKind).block / 8;

  template <int kBlock, int kRows, int kFours>
  PAGODA_INLINE static void add(const UnitPlanes<kKind>& planes, const TileView& tile,
                                int32x4_t (&s)[kRows][kFours]) {
    // Sums of each pair of columns: of high bytes [first, second column], then of low bytes.
    int32x4_t pairs[kRows][2 * kFours];
    for_all<kRows>([&](auto r) PAGODA_FLATTEN {
      for_all<2 * kFours>([&](auto p) PAGODA_FLATTEN { pairs[r][p] = vdupq_n_s32(0); });
    });
    for_all<kEightsOfBlock>([&](auto i) PAGODA_FLATTEN {
      constexpr int kQuad = 2 * (kBlock * kEightsOfBlock + decltype(i)::kValue);
      ColumnPairs w[kFours];
      for_all<kFours>([&](auto c) PAGODA_FLATTEN {
        w[c] = pairs_of<kQuad>(planes.after(0, kRegisterBytes * c));
      });
      for_all<kRows>([&](auto r) PAGODA_FLATTEN {
        const int8x16_t x = load_split(tile.units + r * kLineBytes, kQuad);
        for_all<2 * kFours>([&](auto p) PAGODA_FLATTEN {
          pairs[r][p] = vmmlaq_s32(pairs[r][p], x, w[p / 2].pair[p % 2]);
          hold(pairs[r][p]);
        });
      });
    });
    for_all<kRows>([&](auto r) PAGODA_FLATTEN {
      for_all<kFours>([&](auto c) PAGODA_FLATTEN {
        s[r][c] = sum_of(pairs[r][2 * c], pairs[r][2 * c + 1]);
        if constexpr (kOffset<kKind> != 0)
          s[r][c] = vaddq_s32(s[r][c], vdupq_n_s32(kOffset<kKind> * tile.sums[r]));
      });
    });
  }

 private:
  template <int kQuad>
  PAGODA_INLINE static ColumnPairs pairs_of(const UnitPlanes<kKind>& planes) {
    const int32x4_t first = vreinterpretq_s32_s8(quad_of<kKind, kQuad>(planes));
    const int32x4_t second = vreinterpretq_s32_s8(quad_of<kKind, kQuad + 1>(planes));
    return {{vreinterpretq_s8_s32(vzip1q_s32(first, second)),
             vreinterpretq_s8_s32(vzip2q_s32(first, second))}};
  }

  PAGODA_INLINE static int32x4_t sum_of(int32x4_t first, int32x4_t second) {
    const int64x2_t a = vreinterpretq_s64_s32(first), b = vreinterpretq_s64_s32(second);
    const int32x4_t high = vreinterpretq_s32_s64(vuzp1q_s64(a, b));
    const int32x4_t low = vreinterpretq_s32_s64(vuzp2q_s64(a, b));
    return vaddq_s32(low, vshlq_n_s32(high, 8));
  }
};

}  // namespace

void multiply_neon_matrix(const PanelProduct& product, std::int64_t begin, std::int64_t end) {
  multiply_integers<MatrixBlockSum>(product, begin, end);
}

}  // namespace pagoda::cpu
