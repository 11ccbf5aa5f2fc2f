// LinearProduct: rows of x on their way through the panels of one weight, for the ops that
// multiply.
//
// Rows are taken a pass at a time and rounded into tiles, as each segment's kernel wants them; then
// threads multiply panels, each sum whole on one thread.
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
  // Pairs of panels worth a fork, for so many panels of output columns a pair.
  std::int64_t grain_pairs() const;

  // Panels [begin, end) of a segment times the rows taken; both even. Thread-safe.
  void multiply(const WeightSegment& segment, std::int64_t begin, std::int64_t end,
                const PanelTarget& target) const;

 private:
  // Rows of x as one kernel wants them.
  struct Tiles {
    const LinearKernels* kernels = nullptr;
    ActivationLayout layout;
    int tile_rows = 0;
    std::int64_t tile_bytes = 0;
    std::int64_t num_tiles = 0;
    Tensor memory;

    std::byte* data() const { return reinterpret_cast<std::byte*>(memory.data<float>()); }
  };
  static constexpr int kMostLayouts = 4;

  const Tiles* find_tiles(PanelKind kind) const;
  void round_rows(const Tiles& tiles);

  Exec& exec_;
  const CpuWeight& weight_;
  const Tensor& x_;
  std::int64_t cols_;
  std::int64_t first_row_ = 0;
  std::int64_t num_rows_ = 0;
  std::array<Tiles, kMostLayouts> tiles_;
  int num_layouts_ = 0;
};

}  // namespace pagoda::cpu
