// A weight as the mlx backend reads it.
//
// If ops are kernels on Metal, it is panels (metal_panels.h): the bits of the file, in the order in
// which lanes read them. A gate and its up part, which one op reads together, are interleaved: a
// panel of the gate, then a panel of up. If ops are the cpu backend's bodies, it is a weight of the
// cpu backend.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/mlx/metal_panels.h"
#include "backend/weight.h"
#include "tensor/tensor.h"

namespace pagoda::mlx {

// Consecutive rows in one format, or a part of each expert.
struct WeightSegment {
  PanelFormat format;
  std::int64_t rows = 0;  // of one expert
  int num_experts = 1;
  std::int64_t expert_words = 0;  // words from an expert's first panel to the next expert's
  std::int64_t panel_words = 0;
  std::int64_t panel_stride = 0;  // words from a panel to the next
  Tensor panels;                  // int32 [words], from the first panel on

  std::int64_t num_panels() const { return (rows + kPanelColumns - 1) / kPanelColumns; }
};

struct MlxWeight final : PackedWeight {
  std::vector<WeightSegment> segments;  // on Metal, in the order of rows
  Weight host;                          // the cpu backend's weight, if there is no Metal

  // Returns whether the segments are gates and their up parts, interleaved.
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
