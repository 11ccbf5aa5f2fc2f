// ReferenceWeight: a checkpoint's blocks and groups as in the file. The scalar codecs decode them
// row by row.
#pragma once

#include <vector>

#include "backend/weight.h"
#include "tensor/buffer.h"

namespace pagoda::reference {

class ReferenceWeight final : public PackedWeight {
 public:
  struct Part {
    WeightFormat format;
    std::int64_t rows;
    BufferRef bytes;  // row after row
    // For affine groups only: their codes are in `bytes`. Scales and biases are stored row after
    // row.
    AffineLayout layout = {};
    BufferRef scales = {};
    BufferRef biases = {};
  };

  ReferenceWeight(std::int64_t cols, std::vector<Part> parts)
      : cols_(cols), parts_(std::move(parts)) {}

  std::int64_t num_bytes() const override;
  // Writes row `row` of the joined matrix: `cols` values.
  void read_row(std::int64_t row, float* values) const;
  const std::vector<Part>& parts() const { return parts_; }

 private:
  std::int64_t cols_;
  std::vector<Part> parts_;
};

inline const ReferenceWeight& packed(const Weight& weight) {
  return static_cast<const ReferenceWeight&>(*weight.packed);
}

// Returns an expert's matrix, or its gate and up part, which shares the memory.
Weight weight_of_expert(const ExpertWeight& weight, int expert);

}  // namespace pagoda::reference
