// The products of many rows by AMX's tiles.
//
// Some panels are taken 256 k at a time, which are unpacked, factors and all, into planes of bytes:
// all rows of x meet them while they stay in the first-level cache, and the next ones are fetched
// meanwhile. Between slices the sums of a tile of rows and a panel wait in memory.
#include <immintrin.h>

#include "ops/linear/amx/group_numbers-inl.h"
#include "ops/linear/amx/linear_amx.h"
#include "ops/linear/amx/tile_sums-inl.h"
#include "ops/linear/avx512/tile_loops-inl.h"

namespace pagoda::cpu {
namespace {

constexpr int kSteps = kSuperGroup / kPlaneDepth;  // tile products of 256 k
constexpr int kUnitsOfStep = kPlaneDepth / kUnit;
constexpr int kRowsOfStep = kTileRows / kSteps;    // that are added up beside one
constexpr std::int64_t kXBytes = 2 * kPlaneBytes;  // of a step
constexpr std::int64_t kMostTiles = 32;            // of rows, whose sums wait in memory
// As many as leave room for a tile of x and its sums in the first-level cache: three per cent more
// than with four.
constexpr int kMostPanels = 2;

// The sums of a tile of rows and a panel.
struct WaitingSums {
  alignas(kLineBytes) float of_row[kTileRows][kPanelColumns];
};

// Some panels' 256 k.
struct Slice {
  std::int64_t first_panel = 0;
  int num_panels = 0;
  std::int64_t index = 0;
  int num_units = 0;
  bool is_last = false;

  PAGODA_INLINE int num_steps() const { return (num_units + kUnitsOfStep - 1) / kUnitsOfStep; }
};

// Lines of panels that lie ahead, some a tile of rows.
class LinesAhead {
 public:
  // Takes `bytes` from `next` on, of each panel.
  PAGODA_INLINE LinesAhead(const std::byte* next, std::int64_t bytes, std::int64_t num_tiles)
      : next_(next), count_((bytes / kLineBytes + num_tiles - 1) / num_tiles) {}

  PAGODA_INLINE void fetch_some(const PanelProduct& product, int num_panels) {
    for (std::int64_t i = 0; i < count_; ++i, next_ += kLineBytes) {
      for (int p = 0; p < num_panels; ++p) {
        __builtin_prefetch(next_ + p * product.panel_bytes, 0, 2);
      }
    }
  }

 private:
  const std::byte* next_;
  std::int64_t count_;
};

template <PanelKind kKind>
class ManyRows {
 public:
  using Format = GroupFormat<kKind>;
  static constexpr int kPlanes = Format::kPlanes;

  explicit ManyRows(const PanelProduct& product) : product_(product) {}

  // Multiplies tiles from a row on with some panels.
  void multiply(std::int64_t first_panel, int num_panels, std::int64_t first_row,
                std::int64_t num_tiles) {
    first_row_ = first_row;
    const std::int64_t num_groups = kPanel.num_groups(product_.cols);
    const std::byte* first = product_.panels + first_panel * product_.panel_bytes;
    for (std::int64_t group = 0; group < num_groups; group += Format::kGroupsInPanel) {
      const std::int64_t left = num_groups - group;
      const auto count =
          static_cast<int>(left < Format::kGroupsInPanel ? left : Format::kGroupsInPanel);
      slice_ = {.first_panel = first_panel,
                .num_panels = num_panels,
                .index = group / Format::kGroupsInPanel,
                .num_units = count * kUnitsOfPanelGroup,
                .is_last = left <= Format::kGroupsInPanel};
      for (int p = 0; p < num_panels; ++p) unpack(p, group, count);
      const std::byte* next = first + product_.header_area + (group + count) * kPanel.group_bytes();
      multiply_slice(num_tiles, {slice_.is_last ? first + num_panels * product_.panel_bytes : next,
                                 Format::kGroupsInPanel * kPanel.group_bytes(), num_tiles});
    }
  }

 private:
  static constexpr PanelFormat kPanel = Format::kPanel;
  static constexpr int kUnitsOfPanelGroup = kPanel.group / kUnit;
  static constexpr int kStepBytes = kPlanes * kPlaneBytes;

  struct Panel {
    alignas(kLineBytes) std::byte weights[kSteps * kStepBytes];
    GroupIntegers<kKind> numbers;
  };

  void unpack(int p, std::int64_t first_group, int num_groups) {
    const std::byte* panel = product_.panels + (slice_.first_panel + p) * product_.panel_bytes;
    Panel& to = panels_[p];
    read_group(product_, panel, first_group, num_groups, to.numbers);
    const std::byte* group = panel + product_.header_area + first_group * kPanel.group_bytes();
    for (int unit = 0; unit < slice_.num_units; ++unit) {
      const int in_group = unit % kUnitsOfPanelGroup;
      unpack_unit(group, in_group, unit, to);
      if (in_group + 1 == kUnitsOfPanelGroup) group += kPanel.group_bytes();
    }
    if (slice_.num_units % kUnitsOfStep != 0) clear_unit(slice_.num_units, to);
  }

  // Returns where a unit's lines of the highest plane are.
  static std::byte* lines_of(int unit, Panel& to) {
    return to.weights + unit / kUnitsOfStep * kStepBytes +
           unit % kUnitsOfStep * (kPlaneBytes / kUnitsOfStep);
  }

  static void unpack_unit(const std::byte* group, int in_group, int unit, Panel& to) {
    constexpr int kUnitsOfFactor = kPanel.block > kUnit ? kPanel.block / kUnit : 1;
    constexpr int kFactorsOfUnit = kPanel.block < kUnit ? kUnit / kPanel.block : 1;
    constexpr int kLines = kUnit / 4;  // of a plane
    const PairReader<kKind, Format::kMiddle> reader;
    const std::byte* low = group + kPanel.low_plane() + in_group * kPanel.low_bits * kLineBytes;
    const std::byte* high = group + kPanel.high_plane() + in_group * kPanel.high_bits * kLineBytes;
    std::byte* const lines = lines_of(unit, to);
    __m512i factors[kFactorsOfUnit];
    for_all<kFactorsOfUnit>([&](auto i) PAGODA_FLATTEN {
      factors[i] = both_halves(to.numbers.factors[unit * kFactorsOfUnit / kUnitsOfFactor + i]);
    });
    for_all<kLines>([&](auto i) PAGODA_FLATTEN {
      constexpr int kFirst = first_pair(decltype(i)::kValue);
      const __m512i factor = factors[i * kFactorsOfUnit / kLines];
      write_line<kPlanes>(reader.template pair<kFirst>(low, high),
                          reader.template pair<kFirst + kPairStep>(low, high), factor,
                          lines + i * kLineBytes);
    });
  }

  // Line i of a plane has pairs first_pair(i) and that + kPairStep, in the order of x's bytes.
  static constexpr int kPairStep = kPanel.low_bits == 4 ? 2 : 1;
  static constexpr int first_pair(int i) { return kPairStep == 2 ? i / 2 * 4 + i % 2 : 2 * i; }

  static void clear_unit(int unit, Panel& to) {
    for (int plane = 0; plane < kPlanes; ++plane) {
      std::byte* lines = lines_of(unit, to) + plane * kPlaneBytes;
      for (int i = 0; i < kPlaneBytes / kUnitsOfStep; i += kLineBytes) {
        _mm512_store_si512(lines + i, _mm512_setzero_si512());
      }
    }
  }

  // A tile of rows times a panel of the slice: what is read, and where it comes to.
  struct Pair {
    const std::byte* x = nullptr;
    const Panel* panel = nullptr;
    TileSums* exact = nullptr;
    WaitingSums* waiting = nullptr;
    GroupRows rows;
    std::int64_t first_row = 0;
    std::int64_t column_panel = 0;
  };
  PAGODA_INLINE Pair pair_of(std::int64_t tile, int panel, int turn) {
    const std::int64_t row = first_row_ + tile * kTileRows;
    const GroupRows rows = rows_of_group<kTileRows>(product_, row, slice_.index);
    return {
        rows.x, &panels_[panel],           &sums_[turn & 1][panel], &waiting_[tile][panel], rows,
        row,    slice_.first_panel + panel};
  }

  void multiply_slice(std::int64_t num_tiles, LinesAhead ahead) {
    if constexpr (is_short(kKind)) return multiply_short(num_tiles, ahead);
    Pair pairs[3];
    std::int64_t tile = 0;
    int panel = 0;
    const int count = static_cast<int>(num_tiles) * slice_.num_panels;
    for (int i = 0; i < count + 2; ++i) {
      Pair& now = pairs[i % 3];
      if (i < count) {
        now = pair_of(tile, panel, i);
        if (panel == 0) ahead.fetch_some(product_, slice_.num_panels);
        if (++panel == slice_.num_panels) {
          panel = 0;
          ++tile;
        }
      }
      const int steps = i < count ? slice_.num_steps() : 0;
      const Pair* before = i >= 1 && i <= count ? &pairs[(i + 2) % 3] : nullptr;
      const Pair* done = i >= 2 ? &pairs[(i + 1) % 3] : nullptr;
      if constexpr (kPlanes == 2) {
        switch (i % 4) {
          case 0:
            words_turn<FirstWordSums>(now, steps, before, done);
            break;
          case 1:
            words_turn<SecondWordSums>(now, steps, before, done);
            break;
          case 2:
            words_turn<ThirdWordSums>(now, steps, before, done);
            break;
          default:
            words_turn<FourthWordSums>(now, steps, before, done);
        }
      } else {
        turn<HighSums, LowSums>(now, steps, before, nullptr);
        turn<LowSums, HighSums>(now, steps, steps > 0 ? &now : nullptr, before);
      }
    }
  }

  // Does the same for short products, of all panels at a time.
  void multiply_short(std::int64_t num_tiles, LinesAhead ahead) {
    Pair pairs[3][kMostPanels];
    for (std::int64_t i = 0; i < num_tiles + 2; ++i) {
      Pair* const now = i < num_tiles ? pairs[i % 3] : nullptr;
      if (now) {
        for (int p = 0; p < kMostPanels; ++p) now[p] = pair_of(i, p, static_cast<int>(i));
        ahead.fetch_some(product_, kMostPanels);
      }
      short_turn(now, now ? slice_.num_steps() : 0,
                 i >= 1 && i <= num_tiles ? pairs[(i + 2) % 3] : nullptr,
                 i >= 2 ? pairs[(i + 1) % 3] : nullptr);
    }
  }

  // Computes pairs `now`, while the rest of pairs `before` is stored, and pairs `done`, whose memory
  // `now` gets in the end, are added up; null where there are none. Not inlined: it takes all
  // registers.
  __attribute__((noinline)) void short_turn(const Pair* now, int num_steps, const Pair* before,
                                            const Pair* done) {
    constexpr int kRowsOfTurn = kMostPanels * kRowsOfStep;
    static_assert(kMostPanels == 2);
    asm volatile("" ::: "memory");  // what the tiles read has been written
    for_all<kSteps>([&](auto step) PAGODA_FLATTEN {
      const bool multiplies = step < num_steps;
      const std::byte* weights[kMostPanels] = {};
      if (multiplies) {
        for_all<kMostPanels>(
            [&](auto p) PAGODA_FLATTEN { weights[p] = now[p].panel->weights + step * kStepBytes; });
        if constexpr (step == 0) ShortSums::start_high();
        ShortSums::add_high(now[0].x + step * kXBytes, weights[0], weights[1]);
      }
      if constexpr (step == 0) {
        if (before) ShortSums::store_middle(*before[0].exact, *before[1].exact);
        if (multiplies) ShortSums::start_middle();
      }
      if (done) add_rows<step % 2 * kRowsOfTurn, kRowsOfTurn>(done[step / 2]);
      if constexpr (step + 1 == kSteps) {
        if (now) ShortSums::store_high(*now[0].exact, *now[1].exact);
      }
      if (multiplies) ShortSums::add_middle(weights[0], weights[1]);
    });
  }

  // Computes Sums of pair `now`, while those of pair `before` are stored from their registers, and
  // those of pair `done` are added up; null where there is none. Not inlined: it takes all registers.
  template <class Sums>
  __attribute__((noinline)) void words_turn(const Pair& now, int num_steps, const Pair* before,
                                            const Pair* done) {
    asm volatile("" ::: "memory");  // what the tiles read has been written
    for_all<kSteps>([&](auto step) PAGODA_FLATTEN {
      const bool multiplies = step < num_steps;
      if (multiplies) Sums::load(now.x + step * kXBytes, now.panel->weights + step * kStepBytes);
      if constexpr (step == 0) Sums::start_high();
      if (multiplies) Sums::add_high();
      if constexpr (step == 0) {
        if (before) store_tile<Sums::kMiddle>(before->exact->planes[0]);
        Sums::start_middle();
      }
      if (multiplies) Sums::add_middle();
      if constexpr (step == 0) {
        if (before) store_tile<Sums::kLow>(before->exact->planes[1]);
        Sums::start_low();
      }
      if (multiplies) Sums::add_low();
      if constexpr (step == 1) {
        if (before) store_tile<Sums::kFree>(before->exact->planes[2]);
      }
      if (done) add_rows<step * kRowsOfStep, kRowsOfStep>(*done);
    });
  }

  // Computes Sums of pair `now`, while the other ones, of pair `before`, are stored, and those of
  // pair `done` are added up; null where there is none. Not inlined: it takes all registers.
  template <class Sums, class Others>
  __attribute__((noinline)) void turn(const Pair& now, int num_steps, const Pair* before,
                                      const Pair* done) {
    asm volatile("" ::: "memory");  // what the tiles read has been written
    Sums::start();
    for_all<kSteps>([&](auto step) PAGODA_FLATTEN {
      if (step < num_steps) {
        Sums::add(now.x + step * kXBytes, now.panel->weights + step * kStepBytes);
      }
      if constexpr (step < Others::kCount) {
        if (before) {
          store_tile<Others::kFirstRegister + step>(
              before->exact->planes[Others::kFirstPlane + step]);
        }
      }
      if (done) add_rows<step * kRowsOfStep, kRowsOfStep>(*done);
    });
  }

  // Adds rows [kFirst, kFirst + kCount) of a pair to what waits, or stores them in the end.
  template <int kFirst, int kCount>
  PAGODA_INLINE void add_rows(const Pair& pair) {
    const auto mask = static_cast<__mmask16>(slice_.index == 0 ? 0 : 0xffff);
    const GroupRows rows = {pair.rows.x, pair.rows.pairs + 4 * kFirst,
                            /*offsets=*/nullptr, pair.rows.block_sums + kFirst,
                            pair.rows.scales + kFirst};
    __m512 of_group[kCount][1], sums[kCount][1];
    for_all<kCount>([&](auto r) PAGODA_FLATTEN {
      of_group[r][0] = rounded_row<kKind>(*pair.exact, kFirst + r);
      sums[r][0] = _mm512_maskz_load_ps(mask, pair.waiting->of_row[kFirst + r]);
    });
    add_exact<kKind, kTileRows>(pair.panel->numbers, rows, slice_.num_units, of_group, sums);
    if (slice_.is_last) {
      return store_sums<kCount, 1>(sums, product_, pair.first_row + kFirst, pair.column_panel);
    }
    for_all<kCount>([&](auto r) PAGODA_FLATTEN {
      _mm512_store_ps(pair.waiting->of_row[kFirst + r], sums[r][0]);
    });
  }

  const PanelProduct& product_;
  std::int64_t first_row_ = 0;
  Slice slice_;
  Panel panels_[kMostPanels];
  TileSums sums_[2][kMostPanels];
  WaitingSums waiting_[kMostTiles][kMostPanels];
};

template <PanelKind kKind>
void multiply_kind(const PanelProduct& product, std::int64_t begin, std::int64_t end) {
  using Product = ManyRows<kKind>;
  const TileRegisters registers(shapes_of_planes());
  Product of_panels(product);
  const std::int64_t num_tiles = (product.num_rows + kTileRows - 1) / kTileRows;
  for (std::int64_t panel = begin; panel < end; panel += kMostPanels) {
    const std::int64_t left = end - panel;
    const auto count = static_cast<int>(left < kMostPanels ? left : kMostPanels);
    for (std::int64_t tile = 0; tile < num_tiles; tile += kMostTiles) {
      const std::int64_t tiles = num_tiles - tile < kMostTiles ? num_tiles - tile : kMostTiles;
      of_panels.multiply(panel, count, tile * kTileRows, tiles);
    }
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
