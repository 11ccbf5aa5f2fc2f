// A weight as the mlx backend reads it.
//
// Panels (metal_panels.h) where ops are kernels on Metal: the bits of the file, in the order
// in which lanes read them. A gate and its other part, which are multiplied together, are
// interleaved: a panel of the one, then a panel of the other. Elsewhere ops are the cpu backend's bodies, and it is the
// weight that they read.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/mlx/metal_panels.h"
#include "backend/weight.h"
#include "tensor/tensor.h"

namespace pagoda::mlx {

// Consecutive rows in one format.
struct WeightSegment {
  PanelFormat format;
  std::int64_t rows = 0;
  std::int64_t panel_words = 0;
  std::int64_t panel_stride = 0;  // words from a panel to the next
  Tensor panels;                  // int32 [words], from the first panel on

  std::int64_t num_panels() const { return (rows + kPanelColumns - 1) / kPanelColumns; }
};

struct MlxWeight final : PackedWeight {
  std::vector<WeightSegment> segments;  // on Metal, in the order of rows
  Weight host;                          // elsewhere

  // Returns whether the segments are a gate and its other part, interleaved.
  bool is_gated() const {
    return !segments.empty() && segments[0].panel_stride > segments[0].panel_words;
  }
  std::int64_t num_bytes() const override;
  void set_next(const PackedWeight& next, const Exec& exec) override;
};

inline const MlxWeight& mlx_weight(const Weight& weight) {
  return static_cast<const MlxWeight&>(*weight.packed);
}

}  // namespace pagoda::mlx
