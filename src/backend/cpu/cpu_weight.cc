#include "backend/cpu/cpu_weight.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/cpu_exec.h"
#include "backend/cpu/panel_layout.h"

namespace pagoda::cpu {
namespace {

// Source bytes that are packed before their pages are released. This bounds the memory in which
// weights are resident twice, as source and packed.
constexpr std::int64_t kReleaseBytes = std::int64_t{4} << 20;

// The bytes that a thread prefetches of its part of the next weight. It can read them while another
// thread computes attention on a short context, and they fit in a second-level cache.
constexpr std::size_t kBytesReadNext = std::size_t{128} << 10;

// Releases the pages of rows [begin, end) of a matrix, which have been packed.
void release_rows(const HostTensor& matrix, std::int64_t begin, std::int64_t end) {
  if (!matrix.storage || !matrix.has_whole_rows()) return;
  const std::int64_t row_bytes = packed_bytes(matrix.format, matrix.shape[1]);
  matrix.storage->release_pages(matrix.bytes.subspan(begin * row_bytes, (end - begin) * row_bytes));
}

// Decides where each part's panels lie. Returns the size of all panels in bytes.
std::int64_t lay_out(std::span<const HostTensor> parts, WeightUse use,
                     std::vector<WeightSegment>& segments) {
  std::int64_t total = 0;
  for (const HostTensor& part : parts) {
    const PanelLayout layout = panel_layout_of(part);
    segments.push_back({.layout = layout,
                        .rows = part.shape[0],
                        .panel_bytes = layout.panel_bytes(),
                        .pair_stride = 2 * layout.panel_bytes(),
                        .offset = total,
                        .panels = {}});
    total += segments.back().num_bytes();
  }
  for (std::size_t i = 0; is_gated(use) && i < segments.size(); i += 2) {
    WeightSegment& gate = segments[i];
    WeightSegment& up = segments[i + 1];
    up.offset = gate.offset + gate.pair_stride;
    gate.pair_stride = up.pair_stride = gate.pair_stride + up.pair_stride;
  }
  return total;
}

void pack_segment(CpuExec& exec, const HostTensor& part, const WeightSegment& segment) {
  const std::int64_t num_panels = segment.num_panels();
  const std::int64_t batch = std::max<std::int64_t>(kReleaseBytes / segment.panel_bytes, 1);
  const auto row_of = [&](std::int64_t panel) {
    return std::min(panel * kPanelColumns, segment.rows);
  };
  for (std::int64_t first = 0; first < num_panels; first += batch) {
    const std::int64_t last = std::min(first + batch, num_panels);
    exec.pool().parallel_for(last - first, 1, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t p = first + begin; p < first + end; ++p) {
        pack_panel(segment.layout, part, row_of(p), static_cast<int>(row_of(p + 1) - row_of(p)),
                   segment.panel(p));
      }
    });
    release_rows(part, row_of(first), row_of(last));
  }
  if (!part.has_whole_rows()) release_pages(part);
}

}  // namespace

std::int64_t CpuWeight::num_bytes() const {
  std::int64_t total = 0;
  for (const WeightSegment& segment : segments_) total += segment.num_bytes();
  return total;
}

void CpuWeight::read_row(std::int64_t row, float* values) const {
  for (const WeightSegment& segment : segments_) {
    if (row < segment.rows) {
      unpack_column(segment.layout, segment.panel(row / kPanelColumns),
                    static_cast<int>(row % kPanelColumns), values);
      return;
    }
    row -= segment.rows;
  }
  PAGODA_CHECK(false, fmt::format("[weight] row {} past the end", row));
}

// Returns the first byte of pair `index` of panels, counted over all segments, or the end of the
// last pair. Two interleaved parts count once: their pairs alternate in memory.
const std::byte* CpuWeight::pair(std::int64_t index) const {
  auto segment = segments_.begin();
  for (; !segment->is_interleaved() && segment + 1 != segments_.end(); ++segment) {
    if (index < segment->num_pairs()) break;
    index -= segment->num_pairs();
  }
  return segment->panel(2 * index);
}

std::span<const std::byte> CpuWeight::part_of(int thread, int num_threads) const {
  std::int64_t num_pairs = 0;
  for (const WeightSegment& segment : segments_) {
    num_pairs += segment.num_pairs();
    if (segment.is_interleaved()) break;
  }
  return {pair(part_begin(num_pairs, thread, num_threads)),
          pair(part_begin(num_pairs, thread + 1, num_threads))};
}

void CpuWeight::set_next(const PackedWeight& next, const Exec& exec) {
  const auto& after = static_cast<const CpuWeight&>(next);
  read_next_.clear();
  for (int thread = 0; thread < exec.num_threads(); ++thread) {
    const std::span<const std::byte> part = after.part_of(thread, exec.num_threads());
    read_next_.push_back(part.first(std::min(part.size(), kBytesReadNext)));
  }
}

Result<Weight> prepare_weight(Exec& exec, std::span<const HostTensor> parts, WeightUse use) {
  auto& cpu_exec = static_cast<CpuExec&>(exec);
  std::vector<WeightSegment> segments;
  const std::int64_t num_bytes = lay_out(parts, use, segments);
  PAGODA_ASSIGN_OR_RETURN(const BufferRef panels,
                          cpu_exec.allocate_weight_bytes(static_cast<std::size_t>(num_bytes)));
  Weight weight{.rows = 0, .cols = parts[0].shape[1], .packed = {}};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    segments[i].panels = panels;
    pack_segment(cpu_exec, parts[i], segments[i]);
    cpu_exec.add_panel_kind(segments[i].layout.kind);
    weight.rows += segments[i].rows;
  }
  weight.packed = std::make_shared<CpuWeight>(std::move(segments));
  return weight;
}

}  // namespace pagoda::cpu
