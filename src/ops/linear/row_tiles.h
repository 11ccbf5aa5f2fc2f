// RowTiles: rows of x as a micro-kernel reads them, and the product of such rows and some panels.
// LinearProduct and ExpertProduct round rows into tiles and multiply them.
#pragma once

#include "backend/cpu/cpu_weight.h"
#include "ops/linear/kernel_choice.h"
#include "ops/linear/linear_kernels.h"

namespace pagoda::cpu {

// Multiply-adds worth a fork: about a microsecond of one core.
inline constexpr std::int64_t kForkWork = 1 << 17;

// Rows of x in the layout of one kernel: tiles of equal height, one after the other.
struct RowTiles {
  const LinearKernels* kernels = nullptr;
  ActivationLayout layout;
  int tile_rows = 0;
  std::int64_t tile_bytes = 0;
  std::int64_t num_tiles = 0;
  std::byte* data = nullptr;  // null as long as nothing is allocated

  std::int64_t num_bytes() const { return num_tiles * tile_bytes; }
};

// Returns the tiles for `num_rows` rows of `cols` values. They are as low as the least number of
// tiles allows.
RowTiles plan_tiles(const KernelChoice& choice, std::int64_t num_rows, std::int64_t cols);

// Prefetches the first bytes of a panel, which a kernel will read next. Kernels prefetch only lines
// that are some way ahead; without this the first lines came one by one, 2 us a product.
void fetch_first_bytes(const std::byte* panel);

// The rows to multiply, and where results go: out[0] has the first row, and the first panel's first
// column.
struct TileProduct {
  const std::byte* tiles = nullptr;  // the first row's
  std::int64_t num_rows = 0;
  float* out = nullptr;  // [num_rows, at least the panels' columns]
  std::int64_t stride = 0;
  const float* bias = nullptr;  // or null
};

// Multiplies panels [begin, end) of a segment with rows in `tiles`. `begin` and `end` are even.
void multiply_panels(const Exec& exec, const WeightSegment& segment, std::int64_t begin,
                     std::int64_t end, const RowTiles& tiles, const TileProduct& product);

}  // namespace pagoda::cpu
