// The cpu product by AMX's tiles of the formats whose blocks have float scales or powers of two.
#include <immintrin.h>

#include "ops/linear/amx/linear_amx.h"
#include "ops/linear/amx/panel_slice-inl.h"
#include "ops/linear/amx/tile_sums-inl.h"
#include "ops/linear/avx512/minima-inl.h"
#include "ops/linear/avx512/tile_loops-inl.h"

namespace pagoda::cpu {
namespace {

constexpr WeightPlanes planes_of(PanelKind kind) {
  if (kind == PanelKind::kInt14) return WeightPlanes::kWords;
  return kind == PanelKind::kAffine8 ? WeightPlanes::kUnsigned : WeightPlanes::kSigned;
}

template <PanelKind kKind>
class BlocksProduct {
 public:
  explicit BlocksProduct(const PanelProduct& product) : product_(product) {}

  void multiply(const PanelsAt& panels, std::int64_t first_row, std::int64_t num_tiles) {
    for_slices<kKind>(
        product_, panels, first_row, num_tiles, [&](const PanelsAt& at) { unpack(at); },
        [&](const PanelsAt& at, std::int64_t row, WaitingSums* sums) {
          for (int p = 0; p < at.count; ++p) multiply_slice(at, p, row, sums[p]);
        });
  }

 private:
  using Loops = TileLoops<kKind, Rounding::kInt16>;
  static constexpr PanelFormat kFormat = Loops::kFormat;
  static constexpr WeightPlanes kPlanes = planes_of(kKind);
  static constexpr int kUnitsOfGroup = Loops::kUnitsOfGroup;
  static constexpr int kUnitsOfBlock = Loops::kUnitsOfBlock;
  static constexpr int kDepth = kFormat.block;
  static_assert(kDepth == kUnitsOfBlock * kUnit && Loops::kBlocksOfUnit == 1);
  static constexpr int kBlocksOfSlice = kUnitsOfSlice / kUnitsOfBlock;
  static constexpr int kBlocksOfGroup = kUnitsOfGroup / kUnitsOfBlock;
  static constexpr int kNumPlanes = kPlanes == WeightPlanes::kWords ? 2 : 1;

  struct Panel {
    alignas(kLineBytes) std::byte weights[kBlocksOfSlice][kNumPlanes * kPlaneBytes<kDepth>];
    GroupNumbers<kKind> numbers[kUnitsOfSlice / kUnitsOfGroup];
    PackedMinima minima[Loops::kHasGroups ? kUnitsOfSlice / kBlocksOfSuper : 1];
  };

  void unpack(const PanelsAt& at) {
    for (int p = 0; p < at.count; ++p) {
      const std::byte* panel = product_.panels + (at.first + p) * product_.panel_bytes;
      const std::int64_t first_group = at.first_unit / kUnitsOfGroup;
      const std::byte* group = panel + product_.header_area + first_group * kFormat.group_bytes();
      Panel& to = panels_[p];
      for (int g = 0; g < at.num_units / kUnitsOfGroup; ++g, group += kFormat.group_bytes()) {
        GroupNumbers<kKind> numbers[1];
        read_panels(product_, panel, group, first_group + g, numbers);
        to.numbers[g] = numbers[0];
        unpack_group(group, to.weights[g * kBlocksOfGroup]);
      }
      if constexpr (Loops::kHasGroups) pack_all_minima(at.num_units, to);
    }
  }

  static void unpack_group(const std::byte* group, std::byte* to) {
    const PairReader<kKind> reader;
    for (int unit = 0; unit < kUnitsOfGroup; ++unit) {
      const std::byte* low = group + kFormat.low_plane() + unit * kFormat.low_bits * kLineBytes;
      const std::byte* high = group + kFormat.high_plane() + unit * kFormat.high_bits * kLineBytes;
      std::byte* block = to + unit / kUnitsOfBlock * kNumPlanes * kPlaneBytes<kDepth>;
      write_planes<kPlanes, kUnit / 2>(
          [&](auto i)
              PAGODA_FLATTEN { return reader.template pair<decltype(i)::kValue>(low, high); },
          block + unit % kUnitsOfBlock * kPlaneBytes<kUnit>, kPlaneBytes<kDepth>);
    }
  }

  static void pack_all_minima(int num_units, Panel& panel) {
    static_assert(!Loops::kHasGroups || kUnitsOfGroup == 1);
    for (int first = 0; first < num_units; first += kBlocksOfSuper) {
      __m512 minima[1][kBlocksOfSuper];
      set_to_zero(minima);
      for (int b = 0; b < kBlocksOfSuper && first + b < num_units; ++b) {
        minima[0][b] = minima_of(panel.numbers[first + b]);
      }
      pack_minima(minima[0], panel.minima[first / kBlocksOfSuper]);
    }
  }

  // A slice of panel p and a tile of rows. Not inlined: it takes all registers.
  __attribute__((noinline)) void multiply_slice(const PanelsAt& at, int p, std::int64_t first_row,
                                                WaitingSums& waiting) const {
    const Panel& panel = panels_[p];
    const RowsAt first = rows_at<Loops, kTileRows>(product_, first_row, at.first_unit);
    const std::byte* const x = first.x;
    RowNumbers rows = first.numbers;
    constexpr std::int64_t kBlockBytes = 2 * kPlaneBytes<kDepth>;
    TileSums<kPlanes> exact[2];  // of a block, while the tiles are at the next one
    HalfSums sums[2];
    for_all<2>([&](auto half) PAGODA_FLATTEN {
      load_half(waiting, half, Loops::kHasSpans || at.is_first, sums[half]);
    });
    const int num_blocks = at.num_units / kUnitsOfBlock;
    multiply_tiles<kPlanes, kDepth>(x, panel.weights[0], exact[0]);
    for (int block = 0; block < num_blocks; ++block) {
      if (block + 1 < num_blocks) {
        multiply_tiles<kPlanes, kDepth>(x + (block + 1) * kBlockBytes, panel.weights[block + 1],
                                        exact[(block + 1) % 2]);
      }
      const GroupNumbers<kKind>(&numbers)[1] = {panel.numbers[block / kBlocksOfGroup]};
      for_all<2>([&](auto half) PAGODA_FLATTEN {
        add_half_block(numbers, block % kBlocksOfGroup, exact[block % 2], half, rows, sums[half]);
      });
      next_block<Loops, kTileRows>(rows);
      const int units_done = (block + 1) * kUnitsOfBlock;
      if (Loops::kHasSpans &&
          (units_done % Loops::kUnitsOfSpan == 0 || units_done == at.num_units)) {
        end_span(at, panel, units_done, rows, sums, waiting);
        next_span<Loops, kTileRows>(rows);
      }
    }
    finish(at, p, first_row, sums, waiting);
  }

  PAGODA_INLINE static RowNumbers half_of(const RowNumbers& rows, int half) {
    const int first = half * kHalfRows;
    return {
        .scales = rows.scales + first, .sums = rows.sums + first, .pairs = rows.pairs + 4 * first};
  }

  PAGODA_INLINE static void add_half_block(const GroupNumbers<kKind> (&numbers)[1], int in_group,
                                           const TileSums<kPlanes>& exact, int half,
                                           const RowNumbers& rows, HalfSums& sums) {
    __m512i s[kHalfRows][1];
    for_all<kHalfRows>([&](auto r) PAGODA_FLATTEN { s[r][0] = exact.row(half * kHalfRows + r); });
    add_block<Loops>(numbers, in_group, s, half_of(rows, half), sums);
  }

  // Adds what a span of x came to, to what waits in memory.
  PAGODA_INLINE void end_span(const PanelsAt& at, const Panel& panel, int units_done,
                              const RowNumbers& rows, HalfSums (&sums)[2],
                              WaitingSums& waiting) const {
    const std::int64_t span = (at.first_unit + units_done - 1) / Loops::kUnitsOfSpan;
    for_all<2>([&](auto half) PAGODA_FLATTEN {
      const RowNumbers of_half = half_of(rows, half);
      if constexpr (Loops::kHasGroups) {
        const PackedMinima& minima = panel.minima[(units_done - 1) / kBlocksOfSuper];
        add_minima<kTileRows>(
            of_half.pairs, (units_done - 1) % Loops::kUnitsOfSpan + 1,
            [&](auto) PAGODA_FLATTEN -> const PackedMinima& { return minima; }, sums[half]);
      }
      HalfSums spans;
      load_half(waiting, half, span == 0, spans);
      const float* scales = scales_of_span<Loops, kTileRows>(of_half);
      add_span<kHalfRows, 1>(scales, sums[half], spans);
      store_half(spans, half, waiting);
    });
  }

  PAGODA_INLINE void finish(const PanelsAt& at, int p, std::int64_t first_row, HalfSums (&sums)[2],
                            WaitingSums& waiting) const {
    for_all<2>([&](auto half) PAGODA_FLATTEN {
      if (!at.is_last) {
        if constexpr (!Loops::kHasSpans) store_half(sums[half], half, waiting);
        return;
      }
      if constexpr (Loops::kHasSpans) load_half(waiting, half, false, sums[half]);
      if constexpr (Loops::kHasPowers) {
        const float* least = least_powers<kTileRows>(product_, first_row) + half * kHalfRows;
        lower(product_, least, at.first + p, sums[half]);
      }
      store_sums<kHalfRows, 1>(sums[half], product_, first_row + half * kHalfRows, at.first + p);
    });
  }

  const PanelProduct& product_;
  Panel panels_[kMostPanels];
};

}  // namespace

namespace amx {

void multiply_blocks(const PanelProduct& product, std::int64_t begin, std::int64_t end) {
  with_kind(product.kind, [&](auto kind) {
    constexpr PanelKind kKind = decltype(kind)::kValue;
    if constexpr (kKind != PanelKind::kF32 && !is_super(kKind)) {
      multiply_panels<BlocksProduct<kKind>, panel_format(kKind).block>(product, begin, end);
    }
  });
}

}  // namespace amx
}  // namespace pagoda::cpu
