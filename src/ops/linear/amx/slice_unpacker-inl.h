// Unpacks 256 k of some panels at a time into planes of bytes for AMX's tiles.
#pragma once

#include <immintrin.h>

#include "ops/linear/amx/group_numbers-inl.h"
#include "ops/linear/amx/tile_sums-inl.h"
#include "ops/linear/avx512/codes-inl.h"
#include "ops/linear/linear_kernels.h"
#include "ops/linear/unrolled-inl.h"

namespace pagoda::cpu {
namespace {

constexpr int kSteps = kSuperGroup / kPlaneDepth;  // tile products of 256 k
constexpr int kUnitsOfStep = kPlaneDepth / kUnit;
// Two panels leave room for a tile of x and its sums in the first-level cache: products are three
// per cent faster than with four. Products have whole pairs of panels.
constexpr int kPanelsOfSlice = 2;

// 256 k of kPanelsOfSlice panels.
template <PanelKind kKind>
struct Slice {
  static constexpr int kStepBytes = GroupFormat<kKind>::kPlanes * kPlaneBytes;
  using Planes = std::byte[kSteps * kStepBytes];  // [steps][planes][16 x 4 k][16 columns x 4]

  std::int64_t first_panel = 0;
  std::int64_t rank = 0;         // of its panels among the interleaved ones
  std::int64_t first_group = 0;  // counted in groups of the panels' format
  int num_groups = 0;
  int num_units = 0;
  bool is_last = false;       // whether it is the last slice of these panels
  GroupRows rows;             // of the first tile of x; the next tile's are tile_bytes further
  Planes* weights = nullptr;  // [panels]
  GroupIntegers<kKind> numbers[kPanelsOfSlice];

  PAGODA_INLINE const std::byte* planes(std::int64_t panel, int step) const {
    return weights[panel] + step * kStepBytes;
  }
  PAGODA_INLINE int num_steps() const { return (num_units + kUnitsOfStep - 1) / kUnitsOfStep; }
};

// How panels are interleaved.
struct SliceOrder {
  std::int64_t panels = 0;  // how many are interleaved
  std::int64_t slices = 0;  // taken from each panel before the next panel's
};

// Visits panels slice by slice, kPanelsOfSlice panels at a time. A slice's planes are valid until
// two more slices are begun, and its other members until four more are. They are needed so long:
// the slice's last sums are added up two pairs later, and a slice may be only one pair.
template <PanelKind kKind>
class SliceUnpacker {
 public:
  using Format = GroupFormat<kKind>;

  // Takes panels [begin, end).
  SliceUnpacker(const PanelProduct& product, std::int64_t begin, std::int64_t end,
                const SliceOrder& order)
      : product_(product),
        num_groups_(kPanel.num_groups(product.cols)),
        end_(end),
        panels_at_once_(order.panels),
        groups_at_once_(order.slices * Format::kGroupsInPanel) {
    take_panels(begin);
    take_groups(0);
  }

  // Returns the number of slices of a panel.
  static std::int64_t num_slices(std::int64_t cols) {
    return (kPanel.num_groups(cols) + Format::kGroupsInPanel - 1) / Format::kGroupsInPanel;
  }
  // Returns whether there is another slice to begin.
  bool has_next() const { return panel_ < end_; }
  // Begins to unpack the next slice. REQUIRES: units_left() is 0.
  Slice<kKind>& begin_next() {
    const std::int64_t groups_left = num_groups_ - group_;
    Slice<kKind>& slice = slices_[count_ % kRing];
    slice.first_panel = panel_;
    slice.rank = (panel_ - panels_.begin) / kPanelsOfSlice;
    slice.first_group = group_;
    slice.is_last = groups_left <= Format::kGroupsInPanel;
    slice.num_groups = slice.is_last ? static_cast<int>(groups_left) : Format::kGroupsInPanel;
    slice.num_units = slice.num_groups * kUnitsOfPanelGroup;
    slice.weights = planes_[count_ % 2];
    ++count_;
    at_ = {.slice = &slice, .units_left = kPanelsOfSlice * slice.num_units};
    const std::byte* first = place();
    advance();
    to_next_ = place() - first;
    return slice;
  }
  // Returns how many units of the slice begun last are still to be unpacked.
  PAGODA_INLINE int units_left() const { return at_.units_left; }
  // Unpacks one unit. Not inlined: it takes most registers. REQUIRES: units_left() > 0.
  __attribute__((noinline)) void unpack_unit() {
    Slice<kKind>& slice = *at_.slice;
    const std::byte* panel =
        product_.panels + (slice.first_panel + at_.panel) * product_.panel_bytes;
    GroupIntegers<kKind>& numbers = slice.numbers[at_.panel];
    if (at_.unit == 0) {
      read_group(product_, panel, slice.first_group, slice.num_groups, numbers);
    }
    const std::int64_t group = slice.first_group + at_.unit / kUnitsOfPanelGroup;
    const std::byte* first = panel + product_.header_area + group * kPanel.group_bytes();
    const int in_group = at_.unit % kUnitsOfPanelGroup;
    fetch_unit(first + to_next_, in_group);
    write_unit(first, in_group, numbers.factors, at_.unit, slice.weights[at_.panel]);
    --at_.units_left;
    if (++at_.unit < slice.num_units) return;
    if (at_.unit % kUnitsOfStep != 0) clear_unit(at_.unit, slice.weights[at_.panel]);
    at_.unit = 0;
    ++at_.panel;
  }

 private:
  static constexpr PanelFormat kPanel = Format::kPanel;
  static constexpr int kUnitsOfPanelGroup = kPanel.group / kUnit;
  static constexpr int kRing = 4;
  using Planes = typename Slice<kKind>::Planes;

  struct Range {
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };

  // Moves to the next slice of the same panels. At the end of a part of k, moves to the next
  // interleaved panels. After the last of them, moves to the next part of k, or to new panels.
  void advance() {
    group_ += Format::kGroupsInPanel;
    if (group_ < groups_.end) return;
    group_ = groups_.begin;
    panel_ += kPanelsOfSlice;
    if (panel_ < panels_.end) return;
    const bool have_more = groups_.end < num_groups_;
    take_panels(have_more ? panels_.begin : panels_.end);
    take_groups(have_more ? groups_.end : 0);
  }
  void take_panels(std::int64_t begin) {
    panels_ = {begin, begin + panels_at_once_ < end_ ? begin + panels_at_once_ : end_};
    panel_ = begin;
  }
  void take_groups(std::int64_t begin) {
    const std::int64_t end = begin + groups_at_once_;
    groups_ = {begin, end < num_groups_ ? end : num_groups_};
    group_ = begin;
  }

  // Returns where the next slice begins, even if there is none.
  const std::byte* place() const {
    return product_.panels + panel_ * product_.panel_bytes + product_.header_area +
           group_ * kPanel.group_bytes();
  }

  // Prefetches a unit's share of a group.
  PAGODA_INLINE static void fetch_unit(const std::byte* group, int in_group) {
    constexpr int kLines = static_cast<int>(kPanel.group_bytes() / kLineBytes);
    constexpr int kLinesOfUnit = (kLines + kUnitsOfPanelGroup - 1) / kUnitsOfPanelGroup;
    group += in_group * kLinesOfUnit * kLineBytes;
    for_all<kLinesOfUnit>([&](auto i)
                              PAGODA_FLATTEN { __builtin_prefetch(group + i * kLineBytes, 0, 2); });
  }

  // Returns where a unit's lines of the highest plane are.
  static std::byte* lines_of(int unit, std::byte* planes) {
    return planes + unit / kUnitsOfStep * Slice<kKind>::kStepBytes +
           unit % kUnitsOfStep * (kPlaneBytes / kUnitsOfStep);
  }

  PAGODA_INLINE static void write_unit(const std::byte* group, int in_group,
                                       const __m512i* factors_of_slice, int unit,
                                       std::byte* planes) {
    constexpr int kUnitsOfFactor = kPanel.block > kUnit ? kPanel.block / kUnit : 1;
    constexpr int kFactorsOfUnit = kPanel.block < kUnit ? kUnit / kPanel.block : 1;
    constexpr int kLines = kUnit / 4;  // of a plane
    const PairReader<kKind, Format::kMiddle> reader;
    const std::byte* low = group + kPanel.low_plane() + in_group * kPanel.low_bits * kLineBytes;
    const std::byte* high = group + kPanel.high_plane() + in_group * kPanel.high_bits * kLineBytes;
    std::byte* const lines = lines_of(unit, planes);
    __m512i factors[kFactorsOfUnit];
    for_all<kFactorsOfUnit>([&](auto i) PAGODA_FLATTEN {
      factors[i] = both_halves(factors_of_slice[unit * kFactorsOfUnit / kUnitsOfFactor + i]);
    });
    for_all<kLines>([&](auto i) PAGODA_FLATTEN {
      constexpr int kFirst = first_pair(decltype(i)::kValue);
      const __m512i factor = factors[i * kFactorsOfUnit / kLines];
      write_line<Format::kPlanes>(reader.template pair<kFirst>(low, high),
                                  reader.template pair<kFirst + kPairStep>(low, high), factor,
                                  lines + i * kLineBytes);
    });
  }

  // Line i of a plane has pairs first_pair(i) and first_pair(i) + kPairStep, in the order of x's
  // bytes.
  static constexpr int kPairStep = kPanel.low_bits == 4 ? 2 : 1;
  static constexpr int first_pair(int i) { return kPairStep == 2 ? i / 2 * 4 + i % 2 : 2 * i; }

  static void clear_unit(int unit, std::byte* planes) {
    for (int plane = 0; plane < Format::kPlanes; ++plane) {
      std::byte* lines = lines_of(unit, planes) + plane * kPlaneBytes;
      for (int i = 0; i < kPlaneBytes / kUnitsOfStep; i += kLineBytes) {
        _mm512_store_si512(lines + i, _mm512_setzero_si512());
      }
    }
  }

  const PanelProduct& product_;
  const std::int64_t num_groups_;
  const std::int64_t end_;
  const std::int64_t panels_at_once_;
  const std::int64_t groups_at_once_;
  Range panels_, groups_;  // the interleaved panels, and their groups in the current part of k
  // The place of the next slice.
  std::int64_t panel_ = 0;
  std::int64_t group_ = 0;
  std::int64_t count_ = 0;      // of slices begun
  std::ptrdiff_t to_next_ = 0;  // bytes from the slice begun last to the one after it
  // The next unit to be unpacked.
  struct {
    Slice<kKind>* slice = nullptr;
    int panel = 0;
    int unit = 0;
    int units_left = 0;
  } at_;
  Slice<kKind> slices_[kRing];
  alignas(kLineBytes) Planes planes_[2][kPanelsOfSlice];
};

}  // namespace
}  // namespace pagoda::cpu
