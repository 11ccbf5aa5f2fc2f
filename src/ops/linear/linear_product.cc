#include "ops/linear/linear_product.h"

#include <algorithm>

namespace pagoda::cpu {
namespace {

constexpr std::int64_t kTileBytesPerPass = std::int64_t{640} << 10;
// Multiply-adds worth a fork: about a microsecond of one core.
constexpr std::int64_t kForkWork = 1 << 17;
// Values of x that a core rounds in a microsecond.
constexpr std::int64_t kForkRounding = 1 << 12;
// Each thread reads all weights where it has rows of its own: enough rows to hide that.
constexpr std::int64_t kRowsOfItsOwn = 96;

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
    : LinearProduct(exec, packed(weight), x, weight.cols) {}

LinearProduct::LinearProduct(Exec& exec, const CpuWeight& weight, const Tensor& x,
                             std::int64_t cols)
    : exec_(exec), weight_(weight), x_(x), cols_(cols) {}

std::int64_t LinearProduct::rows_per_pass() const {
  const std::int64_t row_bytes = 2 * cols_;
  return std::max(kTileBytesPerPass / row_bytes / kRowGrain, std::int64_t{1}) * kRowGrain;
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

bool LinearProduct::splits_rows(std::int64_t tokens) const {
  const int num_threads = exec_.num_threads();
  return num_threads > 1 && tokens >= num_threads * kRowsOfItsOwn;
}

void LinearProduct::plan_rows(std::int64_t first, std::int64_t count) {
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
  }
}

void LinearProduct::place_tiles(float* memory) {
  auto* next = reinterpret_cast<std::byte*>(memory);
  for (int i = 0; i < num_layouts_; ++i) {
    tiles_[i].data = next;
    next += tiles_[i].num_tiles * tiles_[i].tile_bytes;
  }
}

std::int64_t LinearProduct::planned_floats() const {
  std::int64_t bytes = 0;
  for (int i = 0; i < num_layouts_; ++i) bytes += tiles_[i].num_tiles * tiles_[i].tile_bytes;
  return (bytes + kLineBytes - 1) / kLineBytes * (kLineBytes / 4);
}

std::int64_t LinearProduct::tile_floats(std::int64_t count) const {
  LinearProduct plan(exec_, weight_, x_, cols_);
  plan.plan_rows(0, count);
  return plan.planned_floats();
}

void LinearProduct::take_rows(std::int64_t first, std::int64_t count) {
  plan_rows(first, count);
  memory_ = exec_.allocate(DType::kFloat32, {planned_floats()});
  place_tiles(memory_.data<float>());
  for (int i = 0; i < num_layouts_; ++i) {
    const Tiles& tiles = tiles_[i];
    const std::int64_t tile_values = tiles.tile_rows * cols_;
    pool_of(exec_).parallel_for(
        tiles.num_tiles, std::max(kForkRounding / tile_values, std::int64_t{1}),
        [&](std::int64_t begin, std::int64_t end, int) { round_tiles(tiles, begin, end); });
  }
}

void LinearProduct::take_rows_alone(std::int64_t first, std::int64_t count, float* memory) {
  plan_rows(first, count);
  place_tiles(memory);
  for (int i = 0; i < num_layouts_; ++i) round_tiles(tiles_[i], 0, tiles_[i].num_tiles);
}

void LinearProduct::round_tiles(const Tiles& tiles, std::int64_t begin, std::int64_t end) const {
  for (std::int64_t tile = begin; tile < end; ++tile) {
    const std::int64_t row = tile * tiles.tile_rows;
    const std::int64_t left = num_rows_ - row;
    tiles.kernels->pack_tile(
        tiles.layout,
        {.x = x_.data<float>() + (first_row_ + row) * x_.stride(0),
         .x_stride = x_.stride(0),
         .num_rows = static_cast<int>(std::min<std::int64_t>(left, tiles.tile_rows)),
         .tile_rows = tiles.tile_rows,
         .cols = cols_},
        tiles.data + tile * tiles.tile_bytes);
  }
}

void LinearProduct::multiply(const WeightSegment& segment, std::int64_t begin, std::int64_t end,
                             const PanelTarget& target) const {
  const Tiles& tiles = *find_tiles(segment.layout.kind);
  tiles.kernels->multiply({.kind = segment.layout.kind,
                           .layout = tiles.layout,
                           .tiles = tiles.data,
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
