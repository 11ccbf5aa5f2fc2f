#include "ops/linear/linear_product.h"

#include <algorithm>

namespace pagoda::cpu {
namespace {

constexpr std::int64_t kTileBytesPerPass = std::int64_t{640} << 10;
// Rows of a pass are whole tiles of every kernel.
constexpr std::int64_t kWholeTiles = 24;
// Multiply-adds worth a fork: about a microsecond of one core.
constexpr std::int64_t kForkWork = 1 << 17;
// Values of x that a core rounds in a microsecond.
constexpr std::int64_t kForkRounding = 1 << 12;

struct KernelChoice {
  const LinearKernels* kernels;
  ActivationLayout layout;
};

KernelChoice kernels_of(const Exec& exec, PanelKind kind) {
  const CpuIsa isa = isa_of(exec);
  const LinearKernels* best = nullptr;
  if (isa == CpuIsa::kAvx512) best = kAvx512Kernels;
  if (isa == CpuIsa::kAvx2) best = kAvx2Kernels;
  if (isa == CpuIsa::kNeon) best = kNeonKernels;
  KernelChoice choice = {best, {}};
  const bool has_int8 = best != nullptr && best->int8_layout_of != nullptr;
  if (has_int8 && rounds_to_int8(exec) && best->int8_layout_of(kind, choice.layout)) return choice;
  if (best != nullptr && best->layout_of(kind, choice.layout)) return choice;
  choice.kernels = kPortableKernels;
  kPortableKernels->layout_of(kind, choice.layout);
  return choice;
}

// The height of all tiles of so many rows: as few tiles as can be, as low as they can be.
int tile_rows_for(std::int64_t num_rows, int most_rows) {
  const std::int64_t num_tiles = (num_rows + most_rows - 1) / most_rows;
  const auto rows = static_cast<int>((num_rows + num_tiles - 1) / num_tiles);
  for (const int height : kTileHeights) {
    if (height >= rows && height <= most_rows) return height;
  }
  return most_rows;
}

}  // namespace

LinearProduct::LinearProduct(Exec& exec, const Weight& weight, const Tensor& x)
    : exec_(exec), weight_(packed(weight)), x_(x), cols_(weight.cols) {}

std::int64_t LinearProduct::rows_per_pass() const {
  const std::int64_t row_bytes = 2 * cols_;
  return std::max(kTileBytesPerPass / row_bytes / kWholeTiles, std::int64_t{1}) * kWholeTiles;
}

std::int64_t LinearProduct::grain_pairs() const {
  const std::int64_t pair_work = num_rows_ * cols_ * 2 * kPanelColumns;
  return std::max(kForkWork / pair_work, std::int64_t{1});
}

const LinearProduct::Tiles* LinearProduct::find_tiles(PanelKind kind) const {
  const KernelChoice choice = kernels_of(exec_, kind);
  for (int i = 0; i < num_layouts_; ++i) {
    if (tiles_[i].kernels == choice.kernels && tiles_[i].layout == choice.layout) return &tiles_[i];
  }
  return nullptr;
}

void LinearProduct::take_rows(std::int64_t first, std::int64_t count) {
  first_row_ = first;
  num_rows_ = count;
  num_layouts_ = 0;
  for (const WeightSegment& segment : weight_.segments()) {
    if (find_tiles(segment.layout.kind) != nullptr) continue;
    PAGODA_CHECK(num_layouts_ < kMostLayouts, "[linear] more layouts than there are");
    const KernelChoice choice = kernels_of(exec_, segment.layout.kind);
    Tiles& tiles = tiles_[num_layouts_++];
    tiles.kernels = choice.kernels;
    tiles.layout = choice.layout;
    tiles.tile_rows = tile_rows_for(count, choice.kernels->most_rows(choice.layout));
    tiles.tile_bytes = choice.kernels->tile_bytes(choice.layout, tiles.tile_rows, cols_);
    tiles.num_tiles = (count + tiles.tile_rows - 1) / tiles.tile_rows;
    tiles.memory = exec_.allocate(DType::kFloat32, {tiles.num_tiles, tiles.tile_bytes / 4});
    round_rows(tiles);
  }
}

void LinearProduct::round_rows(const Tiles& tiles) {
  const std::int64_t tile_values = tiles.tile_rows * cols_;
  const std::int64_t grain = std::max(kForkRounding / tile_values, std::int64_t{1});
  const auto round = [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t tile = begin; tile < end; ++tile) {
      const std::int64_t row = tile * tiles.tile_rows;
      tiles.kernels->pack_tile(
          tiles.layout,
          {.x = x_.data<float>() + (first_row_ + row) * x_.stride(0),
           .x_stride = x_.stride(0),
           .num_rows = static_cast<int>(std::min<std::int64_t>(num_rows_ - row, tiles.tile_rows)),
           .tile_rows = tiles.tile_rows,
           .cols = cols_},
          tiles.data() + tile * tiles.tile_bytes);
    }
  };
  pool_of(exec_).parallel_for(tiles.num_tiles, grain, round);
}

void LinearProduct::multiply(const WeightSegment& segment, std::int64_t begin, std::int64_t end,
                             const PanelTarget& target) const {
  const Tiles& tiles = *find_tiles(segment.layout.kind);
  tiles.kernels->multiply({.kind = segment.layout.kind,
                           .layout = tiles.layout,
                           .tiles = tiles.data(),
                           .tile_bytes = tiles.tile_bytes,
                           .tile_rows = tiles.tile_rows,
                           .num_rows = num_rows_,
                           .cols = cols_,
                           .panels = segment.panel(begin),
                           .panel_bytes = segment.panel_bytes,
                           .header_area = segment.layout.header_area(),
                           .units_of_header = segment.layout.units_of_header,
                           .header_is_bfloat16 = segment.layout.header_is_bfloat16,
                           .num_columns = segment.rows - begin * kPanelColumns,
                           .out = target.out,
                           .out_stride = target.stride,
                           .bias = target.bias},
                          0, end - begin);
}

}  // namespace pagoda::cpu
