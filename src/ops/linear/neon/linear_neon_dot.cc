// The cpu product's byte dot products on AArch64 with the dot product extension.
//
// Two sdot do 16 products of a 16-bit x. That is 8 per instruction, and smlal does 4.
//
// This file is compiled for one instruction set, so it uses only its own functions: an inline
// function of a shared header could be linked into code that runs on every machine.
#include "ops/linear/neon/codes-inl.h"

namespace pagoda::cpu {
namespace {

template <PanelKind kKind>
struct DotBlockSum {
  static constexpr int kQuadsOfBlock = panel_format(kKind).block / 4;

  template <int kBlock, int kRows, int kFours>
  PAGODA_INLINE static void add(const UnitPlanes<kKind>& planes, const TileView& tile,
                                int32x4_t (&s)[kRows][kFours]) {
    int32x4_t high[kRows][kFours];
    for_all<kRows>([&](auto r) PAGODA_FLATTEN {
      const int32x4_t start = vdupq_n_s32(kOffset<kKind> ? kOffset<kKind> * tile.sums[r] : 0);
      for_all<kFours>([&](auto c) PAGODA_FLATTEN {
        s[r][c] = start;
        high[r][c] = vdupq_n_s32(0);
      });
    });
    for_all<kQuadsOfBlock>([&](auto i) PAGODA_FLATTEN {
      constexpr int kQuad = kBlock * kQuadsOfBlock + decltype(i)::kValue;
      int8x16_t w[kFours];
      for_all<kFours>([&](auto c) PAGODA_FLATTEN {
        w[c] = quad_of<kKind, kQuad>(planes.after(0, kRegisterBytes * c));
      });
      for_all<kRows>([&](auto r) PAGODA_FLATTEN {
        const int8x16_t x = load_split(tile.units + r * kLineBytes, kQuad);
        for_all<kFours>([&](auto c) PAGODA_FLATTEN {
          high[r][c] = vdotq_laneq_s32(high[r][c], w[c], x, kQuad % 2);
          s[r][c] = vdotq_laneq_s32(s[r][c], w[c], x, 2 + kQuad % 2);
          hold(high[r][c]);
          hold(s[r][c]);
        });
      });
    });
    for_all<kRows>([&](auto r) PAGODA_FLATTEN {
      for_all<kFours>(
          [&](auto c) PAGODA_FLATTEN { s[r][c] = vaddq_s32(s[r][c], vshlq_n_s32(high[r][c], 8)); });
    });
  }
};

}  // namespace

void multiply_neon_dot(const PanelProduct& product, std::int64_t begin, std::int64_t end) {
  multiply_integers<DotBlockSum>(product, begin, end);
}

}  // namespace pagoda::cpu
