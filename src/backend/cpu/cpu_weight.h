// CpuWeight: a matrix as the cpu backend's products read it: panels of 16 output columns, k in
// order.
//
// A panel holds 16 rows of the checkpoint's matrix (output columns of the product) side by side, so
// that a vector register holds one k of 16 outputs and no sum crosses lanes. It takes as many bytes
// as its rows did in the file.
//
//   F32, F16, BF16   for each k: 16 values
//   Q8_0             for each 32 k: 16 scales (f16); then for each k: 16 int8
//   Q4_0             for each 32 k: 16 scales (f16); then for each pair of k: 16 bytes
//   Q4_1             for each 32 k: 16 scales, 16 minima (f16); then the pairs
//
// A pair's byte has the even k in its low nibble. Parts of different formats (a joined q, k and v)
// are segments one after the other, each of whole groups of four panels, the most that a kernel
// takes at a time; rows that are missing are zero.
#pragma once

#include <vector>

#include "backend/weight.h"
#include "tensor/buffer.h"

namespace pagoda::cpu {

inline constexpr int kPanelColumns = 16;
inline constexpr int kPanelGroup = 4;

struct WeightSegment {
  WeightFormat format = WeightFormat::kF32;
  std::int64_t rows = 0;         // of the checkpoint's matrix
  std::int64_t panel_bytes = 0;  // a multiple of 16
  BufferRef panels;

  std::int64_t num_panels() const {
    constexpr std::int64_t kGroupRows = kPanelColumns * kPanelGroup;
    return (rows + kGroupRows - 1) / kGroupRows * kPanelGroup;
  }
  const std::byte* panel(std::int64_t i) const { return panels->data() + i * panel_bytes; }
};

class CpuWeight final : public PackedWeight {
 public:
  CpuWeight(std::int64_t cols, std::vector<WeightSegment> segments)
      : cols_(cols), segments_(std::move(segments)) {}

  std::int64_t num_bytes() const override;
  const std::vector<WeightSegment>& segments() const { return segments_; }
  // Writes row `row` of the joined matrix: `cols` values, as the format's scalar codec decodes
  // them.
  void read_row(std::int64_t row, float* values) const;

 private:
  std::int64_t cols_;
  std::vector<WeightSegment> segments_;
};

inline const CpuWeight& packed(const Weight& weight) {
  return static_cast<const CpuWeight&>(*weight.packed);
}

}  // namespace pagoda::cpu
