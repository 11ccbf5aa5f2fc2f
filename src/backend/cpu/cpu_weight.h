// CpuWeight: a matrix as the cpu backend's products read it: panels of 16 output columns, k in
// order (panel_format.h draws them).
//
// A vector register holds two consecutive k of 16 outputs, so that no sum crosses lanes, and a
// thread reads one ascending stream. Parts of different formats (a joined q, k and v) are segments,
// one after the other. A segment is whole pairs of panels, because a kernel computes at most a pair
// at a time; missing rows are zero. A gate and its up part, which one op reads together, are
// interleaved: a pair of the gate's panels, then a pair of up's panels. Experts lie one after the
// other.
#pragma once

#include <span>
#include <vector>

#include "backend/cpu/panel_layout.h"
#include "backend/weight.h"
#include "tensor/buffer.h"

namespace pagoda::cpu {

struct WeightSegment {
  PanelLayout layout;
  std::int64_t rows = 0;         // rows of the checkpoint's matrix
  std::int64_t panel_bytes = 0;  // a multiple of 64
  std::int64_t pair_stride = 0;  // bytes from a pair of panels to the next
  std::int64_t offset = 0;       // where the first panel begins in `panels`, in bytes
  BufferRef panels;              // the panels of all segments

  std::int64_t num_panels() const {
    constexpr std::int64_t kPairRows = 2 * kPanelColumns;
    return (rows + kPairRows - 1) / kPairRows * 2;
  }
  std::int64_t num_bytes() const { return num_panels() * panel_bytes; }
  std::int64_t num_pairs() const { return num_panels() / 2; }
  bool is_interleaved() const { return pair_stride > 2 * panel_bytes; }
  std::byte* panel(std::int64_t i) const {
    return panels->host() + offset + i / 2 * pair_stride + i % 2 * panel_bytes;
  }
};

class CpuWeight final : public PackedWeight {
 public:
  explicit CpuWeight(std::vector<WeightSegment> segments) : segments_(std::move(segments)) {}

  std::int64_t num_bytes() const override;
  const std::vector<WeightSegment>& segments() const { return segments_; }
  // Writes row `row` of the joined matrix: `cols` values, as the format's scalar codec decodes
  // them.
  void read_row(std::int64_t row, float* values) const;
  // Returns the thread's part of the panels in a product of few rows. REQUIRES: there is a single
  // expert.
  std::span<const std::byte> part_of(int thread, int num_threads) const;

  bool is_gated() const { return segments_.front().is_interleaved(); }

  // Returns the bytes that each thread reads first in the weight that a step multiplies after this
  // one. Nothing keeps that weight alive: its bytes may be prefetched, but not read.
  std::span<const std::span<const std::byte>> read_next() const { return read_next_; }
  void set_next(const PackedWeight& next, const Exec& exec) override;

 private:
  const std::byte* pair(std::int64_t index) const;

  std::vector<WeightSegment> segments_;
  std::vector<std::span<const std::byte>> read_next_;
};

inline const CpuWeight& packed(const Weight& weight) {
  return static_cast<const CpuWeight&>(*weight.packed);
}

}  // namespace pagoda::cpu
