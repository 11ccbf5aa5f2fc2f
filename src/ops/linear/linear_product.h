// LinearProduct: rows of x on their way through the panels of one weight, for the ops that
// multiply.
//
// Rows are taken a pass at a time and rounded into tiles, as each segment's kernel wants them; then
// panels are multiplied, each sum whole on one thread. Few rows are rounded by all threads, which
// then share out panels; of many each thread takes its own, so that tiles and products stay in its
// own cache and the next op finds its rows there.
#pragma once

#include <array>

#include "backend/cpu/cpu_exec.h"
#include "backend/cpu/cpu_weight.h"
#include "ops/linear/linear_kernels.h"
#include "tensor/tensor.h"

namespace pagoda::cpu {

// Where panels' columns go: the first panel's first column at out[0].
struct PanelTarget {
  float* out = nullptr;  // [rows of the pass, at least the panels' columns]
  std::int64_t stride = 0;
  const float* bias = nullptr;  // or null
};

class LinearProduct {
 public:
  // x [tokens, cols]; both outlive the product.
  LinearProduct(Exec& exec, const Weight& weight, const Tensor& x);

  // As many rows as leave their tiles in a core's second-level cache while all panels pass by.
  std::int64_t rows_per_pass() const;
  // Rounds rows [first, first + count) of x, by all threads.
  void take_rows(std::int64_t first, std::int64_t count);
  // The same on the calling thread, into memory of tile_floats(count), in lines of 64 bytes.
  void take_rows_alone(std::int64_t first, std::int64_t count, float* memory);
  std::int64_t tile_floats(std::int64_t count) const;
  // Whether so many rows are enough for each thread to have its own.
  bool splits_rows(std::int64_t tokens) const;
  // A multiple of every kernel's tile, in which threads share out rows.
  static constexpr std::int64_t kRowGrain = 24;
  // Pairs of panels worth a fork, for so many panels of output columns a pair.
  std::int64_t grain_pairs() const;

  // Panels [begin, end) of a segment times the rows taken; both even. Thread-safe.
  void multiply(const WeightSegment& segment, std::int64_t begin, std::int64_t end,
                const PanelTarget& target) const;

 private:
  LinearProduct(Exec& exec, const CpuWeight& weight, const Tensor& x, std::int64_t cols);

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
  // Which tiles rows [first, first + count) need; their memory comes after.
  void plan_rows(std::int64_t first, std::int64_t count);
  std::int64_t planned_floats() const;
  void place_tiles(float* memory);
  void round_tiles(const Tiles& tiles, std::int64_t begin, std::int64_t end) const;

  Exec& exec_;
  const CpuWeight& weight_;
  const Tensor& x_;
  std::int64_t cols_;
  std::int64_t first_row_ = 0;
  std::int64_t num_rows_ = 0;
  Tensor memory_;
  std::array<Tiles, kMostLayouts> tiles_;
  int num_layouts_ = 0;
};

}  // namespace pagoda::cpu
