// LinearProduct multiplies rows of x with the panels of one weight, for the ops linear and
// gated_linear.
//
// A pass takes some rows, and rounds them into tiles in the layout of each segment's kernel. Then
// it multiplies panels; one thread computes each sum completely. The rows decide how threads divide
// the work:
// - Few rows are one block, and threads divide its panels.
// - More rows are several blocks, if panels alone are too few pieces to divide evenly.
// - Many rows are one block for each thread. The thread multiplies it with all panels, while its
//   cache keeps the block's tiles.
//
// A thread that finishes early takes panels from the end of another thread's share.
#pragma once

#include <array>

#include "backend/cpu/cpu_exec.h"
#include "backend/cpu/cpu_weight.h"
#include "ops/linear/row_tiles.h"
#include "tensor/tensor.h"

namespace pagoda::cpu {

struct RowBlock {
  std::int64_t first = 0;  // counted from the pass's first row
  std::int64_t count = 0;
};

// The rows to multiply, and where results go: out[0] has the block's first row and the first
// panel's first column.
struct PanelTarget {
  RowBlock rows;
  int thread = 0;        // the one that multiplies
  float* out = nullptr;  // [rows, at least the panels' columns]
  std::int64_t stride = 0;
  const float* bias = nullptr;  // or null
};

class LinearProduct {
 public:
  // REQUIRES: x is [tokens, cols]; it and the weight outlive the product.
  LinearProduct(Exec& exec, const Weight& weight, const Tensor& x);

  // Returns the most rows of a pass. With so many, a block's tiles stay in a core's second-level
  // cache while it is multiplied with all panels.
  std::int64_t rows_per_pass() const { return rows_per_pass_; }
  // Returns the most rows that a block of a pass has.
  std::int64_t block_rows() const { return block_rows_; }
  // Takes rows [first, first + count) of x. If they are more than a tile, all threads round them
  // here; else each thread rounds its own copy in start().
  void take_rows(std::int64_t first, std::int64_t count);
  // Prepares a thread to multiply panels from `panel` on. If there is a single tile, the thread
  // rounds its own copy while its first weights are being fetched. If one thread rounded it for
  // all, the others and the memory would be idle for 1 us, 4 % of a decode step.
  void start(const WeightSegment& segment, std::int64_t panel, int thread) const;
  // Returns the number of blocks of the rows taken.
  std::int64_t num_blocks() const { return (num_rows_ + block_rows_ - 1) / block_rows_; }
  RowBlock block(std::int64_t index) const;
  // Returns how many of `num_pairs` pairs of panels a thread takes at a time: one, so that shares
  // are as even as possible, or more if a pair is too little work for a fork.
  std::int64_t grain_pairs(std::int64_t num_pairs) const;

  // Multiplies panels [begin, end) of a segment with a block of the rows taken. `begin` and `end`
  // are even. Called after start() on the same thread; thread-safe.
  void multiply(const WeightSegment& segment, std::int64_t begin, std::int64_t end,
                const PanelTarget& target) const;
  // Makes the workers prefetch the next product's weights once they have finished this one, if it
  // has few rows. They would be idle: the caller alone computes norms and short contexts, or other
  // threads still multiply. REQUIRES: called before this product's fork.
  void fetch_next() const;

 private:
  static constexpr int kMostLayouts = 4;

  const RowTiles* find_tiles(PanelKind kind) const;
  void plan_tiles();
  std::int64_t row_grain() const;    // blocks have a multiple of so many rows
  std::int64_t tile_memory() const;  // bytes
  bool is_single_tile() const;
  void round_tiles(const RowTiles& tiles);
  // Rounds a part of a tile; `to` is where the tile begins.
  void round_part(const RowTiles& tiles, std::int64_t tile, const TilePart& part,
                  std::byte* to) const;

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
  std::int64_t copy_bytes_ = 0;  // of each thread's own tiles; 0: threads share the tiles
  std::array<RowTiles, kMostLayouts> tiles_;
  int num_layouts_ = 0;
};

}  // namespace pagoda::cpu
