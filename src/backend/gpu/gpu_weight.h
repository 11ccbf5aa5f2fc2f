// A weight as kernels on a GPU read it.
//
// If ops are kernels, it is panels (gpu_panels.h): the bits of the file, in the order in
// which lanes read them. A gate and its up part, which one op reads together, are interleaved: a
// panel of the gate, then a panel of up. If ops are the cpu backend's bodies, it is a weight of the
// cpu backend.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/gpu/gpu_panels.h"
#include "backend/weight.h"
#include "tensor/tensor.h"

namespace pagoda::gpu {

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

struct GpuWeight final : PackedWeight {
  std::vector<WeightSegment> segments;  // of kernels, in the order of rows
  Weight host;                          // the cpu backend's weight, if ops are its bodies

  // Returns whether the segments are gates and their up parts, interleaved.
  bool is_gated() const {
    return !segments.empty() && segments[0].panel_stride > segments[0].panel_words;
  }
  std::int64_t num_bytes() const override;
  void set_next(const PackedWeight& next, const Exec& exec) override;
};

inline const GpuWeight& gpu_weight(const Weight& weight) {
  return static_cast<const GpuWeight&>(*weight.packed);
}

}  // namespace pagoda::gpu
