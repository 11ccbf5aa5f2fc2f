// CpuWeight: a matrix as the cpu backend's products read it: panels of 16 output columns, k in
// order (panel_format.h draws them).
//
// A vector register holds a pair of k of 16 outputs, so that no sum crosses lanes, and a thread
// reads one ascending stream. Parts of different formats (a joined q, k and v) are segments, one
// after the other. A segment is whole pairs of panels, because a kernel takes a pair at most at a
// time; rows that are missing are zero. A gate and its other part (up), which are multiplied
// together, are interleaved: a pair of panels of the one, then a pair of the other.
#pragma once

#include <span>
#include <vector>

#include "backend/cpu/panel_layout.h"
#include "backend/weight.h"
#include "tensor/buffer.h"

namespace pagoda::cpu {

struct WeightSegment {
  PanelLayout layout;
  std::int64_t rows = 0;         // of the checkpoint's matrix
  std::int64_t panel_bytes = 0;  // a multiple of 64
  std::int64_t pair_stride = 0;  // bytes from a pair of panels to the next
  std::int64_t offset = 0;       // of the first panel, bytes
  BufferRef panels;              // of all segments

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
  // Returns the bytes that a thread reads where threads share the panels out for few rows.
  std::span<const std::byte> part_of(int thread, int num_threads) const;

  bool is_gated() const { return segments_.front().is_interleaved(); }

  // Returns the bytes that each thread reads first of the weight that a step multiplies after this
  // one. Nothing keeps that weight alive: it may be fetched, not read.
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
