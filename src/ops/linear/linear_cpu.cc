// The cpu product: which kernel takes which part of a weight, and the sharing out over threads.
//
// Rows of x are rounded into tiles once, then threads share out panels, never sums.
#include <algorithm>
#include <array>

#include "backend/cpu/cpu_exec.h"
#include "backend/cpu/cpu_weight.h"
#include "ops/linear/linear.h"
#include "ops/linear/linear_kernels.h"

namespace pagoda::cpu {
namespace {

// Bytes of tiles that stay in a core's second-level cache while all panels pass by.
constexpr std::int64_t kTileBytesPerPass = std::int64_t{640} << 10;
// Multiply-adds worth a fork: about two microseconds of one core.
constexpr std::int64_t kForkWork = 1 << 17;
constexpr int kMostLayouts = 4;

const LinearKernels& kernels_of(CpuIsa isa, PanelKind kind, ActivationLayout& layout) {
  const LinearKernels* best = nullptr;
  if (isa == CpuIsa::kAvx512) best = kAvx512Kernels;
  if (isa == CpuIsa::kAvx2) best = kAvx2Kernels;
  if (isa == CpuIsa::kNeon) best = kNeonKernels;
  if (best != nullptr && best->layout_of(kind, layout)) return *best;
  kPortableKernels->layout_of(kind, layout);
  return *kPortableKernels;
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

// Rows of x as one kernel wants them.
struct Tiles {
  const LinearKernels* kernels = nullptr;
  ActivationLayout layout;
  int tile_rows = 0;
  std::int64_t tile_bytes = 0;
  std::int64_t num_tiles = 0;
  Tensor memory;
};

class Product {
 public:
  Product(Exec& exec, const Weight& weight, const Tensor& x, float* out, const float* bias)
      : exec_(exec), weight_(packed(weight)), x_(x), cols_(weight.cols), out_(out), bias_(bias) {
    for (const WeightSegment& segment : weight_.segments()) num_panels_ += segment.num_panels();
    out_stride_ = weight.rows;
  }

  // As many rows as fit a pass, whole tiles of every kernel.
  std::int64_t rows_per_pass() const {
    constexpr std::int64_t kWholeTiles = 24;
    const std::int64_t rows = kTileBytesPerPass / (2 * cols_ + 1) / kWholeTiles * kWholeTiles;
    return std::max(rows, kWholeTiles);
  }

  void multiply(std::int64_t first_row, std::int64_t num_rows) {
    first_row_ = first_row;
    num_rows_ = num_rows;
    num_layouts_ = 0;
    for (const WeightSegment& segment : weight_.segments()) tiles_of(segment);
    const std::int64_t pair_work = num_rows * cols_ * 2 * kPanelColumns;
    const std::int64_t grain = 2 * std::max(kForkWork / pair_work, std::int64_t{1});
    pool_of(exec_).parallel_for(num_panels_, grain, [&](std::int64_t begin, std::int64_t end, int) {
      multiply_panels(begin, end);
    });
  }

 private:
  const Tiles& tiles_of(const WeightSegment& segment) {
    ActivationLayout layout;
    const LinearKernels& kernels = kernels_of(isa_of(exec_), segment.layout.kind, layout);
    for (int i = 0; i < num_layouts_; ++i) {
      if (tiles_[i].kernels == &kernels && tiles_[i].layout == layout) return tiles_[i];
    }
    PAGODA_CHECK(num_layouts_ < kMostLayouts, "[linear] more layouts than there are");
    Tiles& tiles = tiles_[num_layouts_++];
    tiles.kernels = &kernels;
    tiles.layout = layout;
    tiles.tile_rows = tile_rows_for(num_rows_, kernels.most_rows(layout));
    tiles.tile_bytes = kernels.tile_bytes(layout, tiles.tile_rows, cols_);
    tiles.num_tiles = (num_rows_ + tiles.tile_rows - 1) / tiles.tile_rows;
    tiles.memory = exec_.allocate(DType::kFloat32, {tiles.num_tiles, tiles.tile_bytes / 4});
    pack(tiles);
    return tiles;
  }

  void pack(const Tiles& tiles) {
    const std::int64_t grain =
        std::max(kForkWork / 16 / (tiles.tile_rows * cols_), std::int64_t{1});
    pool_of(exec_).parallel_for(
        tiles.num_tiles, grain, [&](std::int64_t begin, std::int64_t end, int) {
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
                first_byte(tiles) + tile * tiles.tile_bytes);
          }
        });
  }

  static std::byte* first_byte(const Tiles& tiles) {
    return reinterpret_cast<std::byte*>(tiles.memory.data<float>());
  }

  // All segments' panels are one range, so that a step forks once a product.
  void multiply_panels(std::int64_t begin, std::int64_t end) {
    std::int64_t first = 0, column = 0;  // of the segment
    for (const WeightSegment& segment : weight_.segments()) {
      const std::int64_t from = std::max(begin - first, std::int64_t{0});
      const std::int64_t to = std::min(end - first, segment.num_panels());
      if (from < to) multiply_segment(segment, column, from, to);
      first += segment.num_panels();
      column += segment.rows;
    }
  }

  void multiply_segment(const WeightSegment& segment, std::int64_t column, std::int64_t begin,
                        std::int64_t end) {
    ActivationLayout layout;
    const LinearKernels& kernels = kernels_of(isa_of(exec_), segment.layout.kind, layout);
    const Tiles* tiles = tiles_.data();
    while (tiles->kernels != &kernels || !(tiles->layout == layout)) ++tiles;
    kernels.multiply({.kind = segment.layout.kind,
                      .layout = layout,
                      .tiles = first_byte(*tiles),
                      .tile_bytes = tiles->tile_bytes,
                      .tile_rows = tiles->tile_rows,
                      .num_rows = num_rows_,
                      .cols = cols_,
                      .panels = segment.panels->data(),
                      .panel_bytes = segment.panel_bytes,
                      .header_area = segment.layout.header_area(),
                      .units_of_header = segment.layout.units_of_header,
                      .header_is_bfloat16 = segment.layout.header_is_bfloat16,
                      .num_columns = segment.rows,
                      .out = out_ + first_row_ * out_stride_ + column,
                      .out_stride = out_stride_,
                      .bias = bias_ ? bias_ + column : nullptr},
                     begin, end);
  }

  Exec& exec_;
  const CpuWeight& weight_;
  const Tensor& x_;
  std::int64_t cols_;
  float* out_;
  const float* bias_;
  std::int64_t out_stride_ = 0;
  std::int64_t num_panels_ = 0;
  std::int64_t first_row_ = 0;
  std::int64_t num_rows_ = 0;
  std::array<Tiles, kMostLayouts> tiles_;
  int num_layouts_ = 0;
};

}  // namespace

Tensor linear(Exec& exec, const Tensor& x, const Weight& weight, const LinearArgs& args) {
  const std::int64_t tokens = x.extent(0);
  Tensor out = exec.allocate(DType::kFloat32, {tokens, weight.rows});
  const float* bias = args.bias.defined() ? args.bias.data<float>() : nullptr;
  Product product(exec, weight, x, out.data<float>(), bias);
  const std::int64_t pass = product.rows_per_pass();
  for (std::int64_t row = 0; row < tokens; row += pass) {
    product.multiply(row, std::min(pass, tokens - row));
  }
  return out;
}

}  // namespace pagoda::cpu
