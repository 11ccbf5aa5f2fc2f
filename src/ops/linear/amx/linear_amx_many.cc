// The products of many rows with AMX's tiles.
//
// A slice is 256 k of some panels, unpacked into planes of bytes. All rows of x are multiplied with
// it while it stays in the first-level cache. Meanwhile the next slice is unpacked, and the one
// after that is prefetched. This pipeline continues from slice to slice and from panels to panels.
// So AMX and AVX-512 instructions wait for each other only at the beginning and the end of a call.
// Between slices, the sums of a tile of rows and a panel are kept in memory.
#include <immintrin.h>

#include "ops/linear/amx/linear_amx.h"
#include "ops/linear/amx/slice_unpacker-inl.h"
#include "ops/linear/amx/tile_sums-inl.h"
#include "ops/linear/avx512/tile_loops-inl.h"

namespace pagoda::cpu {
namespace {

constexpr int kRowsOfStep = kTileRows / kSteps;    // that are added up during a step
constexpr std::int64_t kXBytes = 2 * kPlaneBytes;  // bytes of x in a step
constexpr auto kFloatBytes = static_cast<std::int64_t>(sizeof(float));
constexpr std::int64_t kMostTiles = 36;  // of rows, with sums in memory between slices
// Bytes of x that stay in the second-level cache while panels are interleaved.
constexpr std::int64_t kNearBytes = std::int64_t{1} << 20;

// The sums of a tile of rows and a panel between slices.
struct WaitingSums {
  alignas(kLineBytes) float of_row[kTileRows][kPanelColumns];
};

// Multiplies tiles [first_tile, first_tile + num_tiles) of rows with panels [begin, end).
template <PanelKind kKind>
class ManyRows {
 public:
  ManyRows(const PanelProduct& product, std::int64_t begin, std::int64_t end,
           std::int64_t first_tile, std::int64_t num_tiles)
      : product_(product),
        first_row_(first_tile * kTileRows),
        num_tiles_(static_cast<int>(num_tiles)),
        unpacker_(product, begin, end, order_of(product, num_tiles)) {}

  void multiply() {
    const Slice<kKind>* next = begin_next();
    unpack(kMostUnits);
    while (next) {
      const Slice<kKind>& slice = *next;
      next = begin_next();
      multiply_slice(slice);
      unpack(kMostUnits);
    }
    for (int i = 0; i < kStages - 1; ++i) advance_pipeline(nullptr, 0, 0);
  }

 private:
  using Format = GroupFormat<kKind>;
  static constexpr int kPlanes = Format::kPlanes;
  // Short products multiply all panels of a slice at a time.
  static constexpr int kPanelsOfPair = is_short(kKind) ? kPanelsOfSlice : 1;
  static constexpr int kStages = 3;  // of the pipeline: a pair is multiplied, stored, added up
  static constexpr int kMostUnits = kPanelsOfSlice * kUnitsOfGroup;

  // Returns the order of slices. If rows are too long for the cache, panels are interleaved: a part
  // of k of each is multiplied in turn. As many are interleaved as there is memory for their sums.
  static SliceOrder order_of(const PanelProduct& product, std::int64_t num_tiles) {
    const std::int64_t num_slices = SliceUnpacker<kKind>::num_slices(product.cols);
    const std::int64_t bytes = num_slices * num_tiles * kSteps * kXBytes;
    const std::int64_t num_parts = (bytes + kNearBytes - 1) / kNearBytes;
    return {.panels = kMostTiles / num_tiles * kPanelsOfSlice,
            .slices = (num_slices + num_parts - 1) / num_parts};
  }

  // A tile of rows and some panels of a slice. Each member is as wide as the registers that store
  // and load it. A load that spans two members, stored one by one, would wait until all stores of
  // tiles have finished.
  struct Pair {
    const Slice<kKind>* slice = nullptr;  // null where there is no pair
    std::int64_t tile = 0;
    std::int64_t panel = 0;  // the first one, as an index in the slice

    PAGODA_INLINE bool exists() const { return slice != nullptr; }
    PAGODA_INLINE int num_steps() const { return slice ? slice->num_steps() : 0; }
  };

  void multiply_slice(const Slice<kKind>& slice) {
    constexpr int kStepsOfTile = kPanelsOfSlice / kPanelsOfPair * kSteps;
    for (int tile = 0; tile < num_tiles_; ++tile) {
      // The next slice is unpacked as late as possible, so that it is in a near cache when it is
      // multiplied.
      const int steps_left = (num_tiles_ - tile) * kStepsOfTile;
      const int units_left = unpacker_.units_left();
      units_of_step_ =
          units_left > steps_left - kStepsOfTile ? (units_left + steps_left - 1) / steps_left : 0;
      for (int panel = 0; panel < kPanelsOfSlice; panel += kPanelsOfPair) {
        advance_pipeline(&slice, tile, panel);
      }
    }
  }

  // Multiplies a pair, while the one before it is stored, and the one before that is added up.
  void advance_pipeline(const Slice<kKind>* slice, std::int64_t tile, std::int64_t panel) {
    Pair& now = pairs_[num_pairs_ % kStages];
    now.slice = slice;
    now.tile = tile;
    now.panel = panel;
    const Pair& before = pairs_[(num_pairs_ + kStages - 1) % kStages];
    const Pair& done = pairs_[(num_pairs_ + 1) % kStages];
    if constexpr (is_short(kKind)) {
      multiply_pair<ShortSums>(now, before, done);
    } else if constexpr (kPlanes == 2) {
      switch (num_pairs_ % 4) {
        case 0:
          multiply_words<FirstWordSums>(now, before, done);
          break;
        case 1:
          multiply_words<SecondWordSums>(now, before, done);
          break;
        case 2:
          multiply_words<ThirdWordSums>(now, before, done);
          break;
        default:
          multiply_words<FourthWordSums>(now, before, done);
      }
    } else {
      multiply_pair<ThreePlaneSums>(now, before, done);
    }
    ++num_pairs_;
  }

  // Returns where the sums of pair `number` are stored. Pair `number + 2` has the same place.
  PAGODA_INLINE TileSums* sums_of(std::uint64_t number) { return sums_[number % 2]; }
  PAGODA_INLINE std::int64_t bytes_before(const Pair& pair) const {
    return pair.tile * product_.tile_bytes;
  }
  PAGODA_INLINE const std::byte* x_of(const Pair& pair) const {
    return pair.exists() ? pair.slice->rows.x + bytes_before(pair) : nullptr;
  }

  // Begins to unpack the next slice, or returns null.
  const Slice<kKind>* begin_next() {
    if (!unpacker_.has_next()) return nullptr;
    Slice<kKind>& slice = unpacker_.begin_next();
    slice.rows =
        rows_of_group<kTileRows>(product_, first_row_, slice.first_group / Format::kGroupsInPanel);
    return &slice;
  }
  __attribute__((noinline)) void unpack(int most_units) {
    for (int i = 0; i < most_units && unpacker_.units_left() > 0; ++i) unpacker_.unpack_unit();
  }
  // Unpacks a step's share of the next slice.
  PAGODA_INLINE void unpack_some() {
    if (units_of_step_ > 0) unpack(units_of_step_);
  }

  // Computes Sums of pair `now`. Meanwhile the rest of pair `before` is stored, and pair `done` is
  // added up; then its memory is reused for `now`. Not inlined: it takes all registers.
  template <class Sums>
  __attribute__((noinline)) void multiply_pair(const Pair& now, const Pair& before,
                                               const Pair& done) {
    static_assert(Sums::kPanels == kPanelsOfPair);
    constexpr int kRows = kPanelsOfPair * kRowsOfStep;
    asm volatile("" ::: "memory");  // writes come before the reads of tiles
    const int num_steps = now.num_steps();
    const std::byte* const x = x_of(now);
    TileSums* const own = sums_of(num_pairs_);
    Ending endings[kPanelsOfPair];
    for_all<kPanelsOfPair>([&](auto p)
                               PAGODA_FLATTEN { endings[p] = ending_of(done, p, &own[p]); });
    for_all<kSteps>([&](auto step) PAGODA_FLATTEN {
      const bool multiplies = step < num_steps;
      const std::byte* weights[kPanelsOfPair] = {};
      if (multiplies) {
        for_all<kPanelsOfPair>(
            [&](auto p) PAGODA_FLATTEN { weights[p] = now.slice->planes(now.panel + p, step); });
        if constexpr (step == 0) Sums::start_high();
        Sums::add_high(x + step * kXBytes, weights);
      }
      if constexpr (step == 0) {
        if (before.exists()) Sums::store_rest(sums_of(num_pairs_ + 1));
        if (multiplies) Sums::start_rest();
      }
      constexpr int kRow = step * kRows;
      if (done.exists()) add_rows<kRow % kTileRows, kRows>(endings[kRow / kTileRows]);
      if constexpr (step + 1 == kSteps) {
        if (now.exists()) Sums::store_high(own);
      }
      if (multiplies) Sums::add_rest(weights);
      unpack_some();
    });
  }

  // Computes Sums of pair `now`. Meanwhile the sums of pair `before` are stored from their
  // registers, and those of pair `done` are added up. Not inlined: it takes all registers.
  template <class Sums>
  __attribute__((noinline)) void multiply_words(const Pair& now, const Pair& before,
                                                const Pair& done) {
    asm volatile("" ::: "memory");  // writes come before the reads of tiles
    const int num_steps = now.num_steps();
    const std::byte* const x = x_of(now);
    TileSums* const others = sums_of(num_pairs_ + 1);
    const Ending ending = ending_of(done, 0, sums_of(num_pairs_));
    for_all<kSteps>([&](auto step) PAGODA_FLATTEN {
      const bool multiplies = step < num_steps;
      if (multiplies) Sums::load(x + step * kXBytes, now.slice->planes(now.panel, step));
      if constexpr (step == 0) Sums::start_high();
      if (multiplies) Sums::add_high();
      if constexpr (step == 0) {
        if (before.exists()) store_tile<Sums::kMiddle>(others->planes[0]);
        Sums::start_middle();
      }
      if (multiplies) Sums::add_middle();
      if constexpr (step == 0) {
        if (before.exists()) store_tile<Sums::kLow>(others->planes[1]);
        Sums::start_low();
      }
      if (multiplies) Sums::add_low();
      if constexpr (step == 1) {
        if (before.exists()) store_tile<Sums::kFree>(others->planes[2]);
      }
      if (done.exists()) add_rows<step * kRowsOfStep, kRowsOfStep>(ending);
      unpack_some();
    });
  }

  // The exact sums of a tile of rows and a panel of a slice, and where they are added.
  struct Ending {
    const Slice<kKind>* slice = nullptr;
    const GroupIntegers<kKind>* numbers = nullptr;
    const TileSums* exact = nullptr;
    WaitingSums* waiting = nullptr;
    GroupRows rows;
    std::int64_t first_row = 0;
    std::int64_t panel = 0;
  };
  PAGODA_INLINE Ending ending_of(const Pair& pair, int p, const TileSums* exact) {
    if (!pair.exists()) return {};
    const std::int64_t panel = pair.panel + p;
    const std::int64_t before = bytes_before(pair);
    const GroupRows& first = pair.slice->rows;
    return {.slice = pair.slice,
            .numbers = &pair.slice->numbers[panel],
            .exact = exact,
            .waiting = &waiting_[pair.slice->rank * num_tiles_ + pair.tile][panel],
            .rows = {.sums = first.sums + before,
                     .block_sums = first.block_sums + before / kFloatBytes,
                     .scales = first.scales + before / kFloatBytes},
            .first_row = first_row_ + pair.tile * kTileRows,
            .panel = pair.slice->first_panel + panel};
  }

  // Adds rows [kFirst, kFirst + kCount) to the sums in memory. After the last slice, stores them as
  // results instead.
  template <int kFirst, int kCount>
  PAGODA_INLINE void add_rows(const Ending& ending) {
    const auto mask = static_cast<__mmask16>(ending.slice->first_group == 0 ? 0 : 0xffff);
    const GroupRows rows = {.sums = ending.rows.sums + 4 * kFirst,
                            .block_sums = ending.rows.block_sums + kFirst,
                            .scales = ending.rows.scales + kFirst};
    __m512 of_group[kCount][1], sums[kCount][1];
    for_all<kCount>([&](auto r) PAGODA_FLATTEN {
      of_group[r][0] = rounded_row<kKind>(*ending.exact, kFirst + r);
      sums[r][0] = _mm512_maskz_load_ps(mask, ending.waiting->of_row[kFirst + r]);
    });
    add_exact<kKind, kTileRows>(*ending.numbers, rows, ending.slice->num_units, of_group, sums);
    if (ending.slice->is_last) {
      return store_sums<kCount, 1>(sums, product_, ending.first_row + kFirst, ending.panel);
    }
    for_all<kCount>([&](auto r) PAGODA_FLATTEN {
      _mm512_store_ps(ending.waiting->of_row[kFirst + r], sums[r][0]);
    });
  }

  const PanelProduct& product_;
  const std::int64_t first_row_;
  const int num_tiles_;
  SliceUnpacker<kKind> unpacker_;
  int units_of_step_ = 0;        // that are unpacked during a step
  std::uint64_t num_pairs_ = 0;  // started so far
  Pair pairs_[kStages];
  TileSums sums_[2][kPanelsOfPair];
  WaitingSums waiting_[kMostTiles][kPanelsOfSlice];
};

template <PanelKind kKind>
void multiply_kind(const PanelProduct& product, std::int64_t begin, std::int64_t end) {
  const TileRegisters registers(shapes_of_planes());
  const std::int64_t num_tiles = (product.num_rows + kTileRows - 1) / kTileRows;
  const std::int64_t num_parts = (num_tiles + kMostTiles - 1) / kMostTiles;
  for (std::int64_t part = 0; part < num_parts; ++part) {
    const std::int64_t first = part * num_tiles / num_parts;
    const std::int64_t last = (part + 1) * num_tiles / num_parts;
    ManyRows<kKind>(product, begin, end, first, last - first).multiply();
  }
}

}  // namespace

namespace amx {

void multiply_many(const PanelProduct& product, std::int64_t begin, std::int64_t end) {
  with_kind(product.kind, [&](auto kind) {
    constexpr PanelKind kKind = decltype(kind)::kValue;
    if constexpr (kKind != PanelKind::kF32) multiply_kind<kKind>(product, begin, end);
  });
}

}  // namespace amx
}  // namespace pagoda::cpu
