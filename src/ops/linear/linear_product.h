// LinearProduct: rows of x on their way through the panels of one weight, for the ops that
// multiply.
//
// Rows are taken a pass at a time and rounded into tiles, as each segment's kernel wants them; then
// panels are multiplied, each sum whole on one thread. Few rows are one block, whose panels threads
// share out. More are some blocks, where panels alone would be too few pieces to share out evenly.
// Many are a block for each thread, whose tiles its own cache keeps, times all panels. A thread
// that is done first takes panels off another's end.
#pragma once

#include <array>

#include "backend/cpu/cpu_exec.h"
#include "backend/cpu/cpu_weight.h"
#include "ops/linear/linear_kernels.h"
#include "tensor/tensor.h"

namespace pagoda::cpu {

struct RowBlock {
  std::int64_t first = 0;  // of the pass
  std::int64_t count = 0;
};

// The rows to multiply, and where panels' columns go: the block's first row and the first panel's
// first column at out[0].
struct PanelTarget {
  RowBlock rows;
  int thread = 0;        // that multiplies
  float* out = nullptr;  // [rows, at least the panels' columns]
  std::int64_t stride = 0;
  const float* bias = nullptr;  // or null
};

class LinearProduct {
 public:
  // REQUIRES: x is [tokens, cols]; it and the weight outlive the product.
  LinearProduct(Exec& exec, const Weight& weight, const Tensor& x);

  // Returns as many rows as leave a block's tiles in a core's second-level cache while all panels
  // pass by.
  std::int64_t rows_per_pass() const { return rows_per_pass_; }
  // Returns the most rows that a block of a pass has.
  std::int64_t block_rows() const { return block_rows_; }
  // Takes rows [first, first + count) of x, and rounds them by all threads where they are more than
  // a tile.
  void take_rows(std::int64_t first, std::int64_t count);
  // Prepares a thread to multiply the panels from `panel` on, which come first. Where there is a
  // single tile the thread makes its own while the first weights are under way: 1 us on one thread,
  // with the others and the memory idle, was 4 % of a decode step.
  void start(const WeightSegment& segment, std::int64_t panel, int thread) const;
  // Returns the number of blocks of the rows taken.
  std::int64_t num_blocks() const { return (num_rows_ + block_rows_ - 1) / block_rows_; }
  RowBlock block(std::int64_t index) const;
  // Returns how many pairs of panels a thread takes at a time of `num_pairs`: one, so that parts
  // are as even as can be, or more where one pair is too little work for a fork.
  std::int64_t grain_pairs(std::int64_t num_pairs) const;

  // Multiplies panels [begin, end) of a segment with a block of the rows taken; both are even.
  // Called after start() on the same thread; thread-safe.
  void multiply(const WeightSegment& segment, std::int64_t begin, std::int64_t end,
                const PanelTarget& target) const;
  // Makes the workers prefetch the weights that they multiply next, after all products of a step
  // with few rows. Meanwhile the caller alone is busy with norms, the cache and short contexts, or
  // other threads still multiply. REQUIRES: the fork that multiplies comes after.
  void fetch_next() const;

 private:
  // Rows of x as one kernel wants them.
  struct Tiles {
    const LinearKernels* kernels = nullptr;
    ActivationLayout layout;
    int tile_rows = 0;
    std::int64_t tile_bytes = 0;
    std::int64_t num_tiles = 0;
    std::byte* data = nullptr;
  };
  static constexpr int kMostLayouts = 4;

  const Tiles* find_tiles(PanelKind kind) const;
  void plan_tiles();
  std::int64_t row_grain() const;    // in which rows are shared out
  std::int64_t tile_memory() const;  // bytes
  bool is_single_tile() const;
  void round_tiles(const Tiles& tiles);
  // Rounds a part of a tile, to where that tile begins.
  void round_part(const Tiles& tiles, std::int64_t tile, const TilePart& part, std::byte* to) const;

  Exec& exec_;
  const CpuWeight& weight_;
  const Tensor& x_;
  std::int64_t cols_;
  std::int64_t rows_per_pass_;
  std::int64_t most_blocks_;  // of a pass
  std::int64_t block_rows_;
  std::int64_t first_row_ = 0;
  std::int64_t num_rows_ = 0;
  Tensor memory_;
  std::int64_t copy_bytes_ = 0;  // from a thread's tiles to the next one's; 0: they share them
  std::array<Tiles, kMostLayouts> tiles_;
  int num_layouts_ = 0;
};

}  // namespace pagoda::cpu
