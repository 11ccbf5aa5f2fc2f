// The cpu product by AMX's tiles of the formats whose blocks have integers for scales
// (avx512/super-inl.h).
//
// Codes meet x first, and the sums of a block of 32 k their scale.
#include <immintrin.h>

#include "ops/linear/amx/linear_amx.h"
#include "ops/linear/amx/panel_slice-inl.h"
#include "ops/linear/amx/tile_sums-inl.h"
#include "ops/linear/avx512/super-inl.h"

namespace pagoda::cpu {
namespace {

constexpr int kUnitsOfGroup = kSuperGroup / kUnit;
constexpr int kGroupsOfSlice = kUnitsOfSlice / kUnitsOfGroup;
constexpr int kSteps = kUnit / 2;  // pairs of k of a unit

template <PanelKind kKind>
class SuperProduct {
 public:
  explicit SuperProduct(const PanelProduct& product) : product_(product) {}

  void multiply(const PanelsAt& panels, std::int64_t first_row, std::int64_t num_tiles) {
    for_slices<kKind>(
        product_, panels, first_row, num_tiles, [&](const PanelsAt& at) { unpack(at); },
        [&](const PanelsAt& at, std::int64_t row, WaitingSums* sums) {
          for (int p = 0; p < at.count; ++p) {
            for (int g = 0; g < at.num_units / kUnitsOfGroup; ++g) {
              multiply_group(at, p, g, row, sums[p]);
            }
          }
        });
  }

 private:
  using Numbers = SuperNumbers<kKind>;
  static constexpr PanelFormat kFormat = Numbers::kFormat;
  static constexpr WeightPlanes kPlanes = WeightPlanes::kSigned;
  static_assert(kFormat.block == kUnit);

  struct Group {
    alignas(kLineBytes) std::byte weights[kUnitsOfGroup][kPlaneBytes<kUnit>];
    Numbers numbers;
  };

  void unpack(const PanelsAt& at) {
    for (int p = 0; p < at.count; ++p) {
      const std::byte* group = product_.panels + (at.first + p) * product_.panel_bytes +
                               at.first_unit / kUnitsOfGroup * kFormat.group_bytes();
      for (int g = 0; g < at.num_units / kUnitsOfGroup; ++g, group += kFormat.group_bytes()) {
        unpack_group(group, groups_[p][g]);
      }
    }
  }

  static void unpack_group(const std::byte* group, Group& to) {
    const PairReader<kKind> reader;
    read_super(group, to.numbers);
    for (int unit = 0; unit < kUnitsOfGroup; ++unit) {
      const std::byte* low = group + kFormat.low_plane() + unit * kFormat.low_bits * kLineBytes;
      const std::byte* high = group + kFormat.high_plane() + unit * kFormat.high_bits * kLineBytes;
      const auto pair = [&](auto i) PAGODA_FLATTEN {
        return reader.template pair<decltype(i)::kValue>(low, high);
      };
      write_planes<kPlanes, kSteps>(pair, to.weights[unit], kPlaneBytes<kUnit>);
    }
  }

  // A group of panel p and a tile of rows. Not inlined: it takes all registers.
  __attribute__((noinline)) void multiply_group(const PanelsAt& at, int p, int g,
                                                std::int64_t first_row,
                                                WaitingSums& waiting) const {
    const Group& group = groups_[p][g];
    const SuperView tile = super_view_of(
        product_.tiles + first_row / kTileRows * product_.tile_bytes, kTileRows, product_.cols);
    const std::int64_t of_row = at.first_unit / kUnitsOfGroup + g;
    const SuperRows rows = rows_of<kTileRows>(tile, of_row, num_pairs(product_.layout));
    constexpr std::int64_t kUnitBytes = 2 * kPlaneBytes<kUnit>;
    TileSums<kPlanes> exact[2];  // of a unit, while the tiles are at the next one
    HalfSums part[2];
    for_all<2>([&](auto half) PAGODA_FLATTEN { set_to_zero(part[half]); });
    multiply_tiles<kPlanes, kUnit>(rows.x, group.weights[0], exact[0]);
    for (int unit = 0; unit < kUnitsOfGroup; ++unit) {
      if (unit + 1 < kUnitsOfGroup) {
        multiply_tiles<kPlanes, kUnit>(rows.x + (unit + 1) * kUnitBytes, group.weights[unit + 1],
                                       exact[(unit + 1) % 2]);
      }
      for_all<2>([&](auto half) PAGODA_FLATTEN {
        for_all<kHalfRows>([&](auto r) PAGODA_FLATTEN {
          const __m512i sum = _mm512_mullo_epi32(group.numbers.scales[unit],
                                                 exact[unit % 2].row(half * kHalfRows + r));
          part[half][r][0] = _mm512_add_ps(part[half][r][0], _mm512_cvtepi32_ps(sum));
        });
      });
    }
    for_all<2>([&](auto half) PAGODA_FLATTEN {
      add_half(at, p, of_row, half, rows, first_row, part[half], waiting);
    });
  }

  // Adds half of a tile's rows to what waits, or stores the products at the last group.
  PAGODA_INLINE void add_half(const PanelsAt& at, int p, std::int64_t g, int half,
                              const SuperRows& rows, std::int64_t first_row, HalfSums& part,
                              WaitingSums& waiting) const {
    const Numbers& numbers = groups_[p][g % kGroupsOfSlice].numbers;
    const int first = half * kHalfRows;
    const auto minima = [&](auto i, auto) PAGODA_FLATTEN { return numbers.minima[i]; };
    HalfSums sums;
    load_half(waiting, half, g == 0, sums);
    add_group<Numbers::kHasMinimum, Numbers::kPairs, kTileRows>(
        {rows.x, rows.sums + 4 * first, rows.scales + first}, {numbers.scale}, {numbers.minimum},
        minima, part, sums);
    if (g + 1 < kFormat.num_groups(product_.cols)) return store_half(sums, half, waiting);
    store_sums<kHalfRows, 1>(sums, product_, first_row + first, at.first + p);
  }

  const PanelProduct& product_;
  Group groups_[kMostPanels][kGroupsOfSlice];
};

}  // namespace

namespace amx {

void multiply_super(const PanelProduct& product, std::int64_t begin, std::int64_t end) {
  with_kind(product.kind, [&](auto kind) {
    constexpr PanelKind kKind = decltype(kind)::kValue;
    if constexpr (is_super(kKind) && panel_format(kKind).block == kUnit) {
      multiply_panels<SuperProduct<kKind>, kUnit>(product, begin, end);
    }
  });
}

}  // namespace amx
}  // namespace pagoda::cpu
