#include "backend/cpu/cpu_weight.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/cpu_exec.h"
#include "backend/cpu/panel_layout.h"

namespace pagoda::cpu {
namespace {

// Source bytes packed between two releases of their pages: bounds what is resident twice.
constexpr std::int64_t kReleaseBytes = std::int64_t{4} << 20;

Result<WeightSegment> pack_segment(CpuExec& exec, const HostTensor& part) {
  const std::int64_t row_bytes = packed_bytes(part.format, part.shape[1]);
  WeightSegment segment{.format = part.format,
                        .rows = part.shape[0],
                        .panel_bytes = row_bytes * kPanelColumns,
                        .panels = {}};
  const std::int64_t num_panels = segment.num_panels();
  PAGODA_ASSIGN_OR_RETURN(
      segment.panels,
      exec.allocate_weight_bytes(static_cast<std::size_t>(num_panels * segment.panel_bytes)));
  const std::int64_t batch = std::max<std::int64_t>(kReleaseBytes / segment.panel_bytes, 1);
  for (std::int64_t first = 0; first < num_panels; first += batch) {
    const std::int64_t last = std::min(first + batch, num_panels);
    exec.pool().parallel_for(last - first, 1, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t p = first + begin; p < first + end; ++p) {
        const std::int64_t row = std::min(p * kPanelColumns, segment.rows);
        const std::int64_t num_rows = std::min<std::int64_t>(kPanelColumns, segment.rows - row);
        pack_panel({.format = part.format,
                    .cols = part.shape[1],
                    .num_rows = static_cast<int>(num_rows),
                    .rows = part.bytes.data() + row * row_bytes},
                   segment.panels->data() + p * segment.panel_bytes);
      }
    });
    if (part.storage) {
      const std::int64_t begin_row = std::min(first * kPanelColumns, segment.rows);
      const std::int64_t end_row = std::min(last * kPanelColumns, segment.rows);
      part.storage->release_pages(
          part.bytes.subspan(begin_row * row_bytes, (end_row - begin_row) * row_bytes));
    }
  }
  return segment;
}

}  // namespace

std::int64_t CpuWeight::num_bytes() const {
  std::int64_t total = 0;
  for (const WeightSegment& segment : segments_) {
    total += static_cast<std::int64_t>(segment.panels->size());
  }
  return total;
}

void CpuWeight::read_row(std::int64_t row, float* values) const {
  for (const WeightSegment& segment : segments_) {
    if (row < segment.rows) {
      unpack_column(segment.format, cols_, segment.panel(row / kPanelColumns),
                    static_cast<int>(row % kPanelColumns), values);
      return;
    }
    row -= segment.rows;
  }
  PAGODA_CHECK(false, fmt::format("[weight] row {} past the end", row));
}

Result<Weight> prepare_weight(Exec& exec, std::span<const HostTensor> parts) {
  std::vector<WeightSegment> segments;
  Weight weight{.rows = 0, .cols = parts[0].shape[1], .packed = {}};
  for (const HostTensor& part : parts) {
    if (part.format > WeightFormat::kQ4_1) {
      return unsupported("[weight] tensor {}: {} is not packed by the cpu backend", part.name,
                         traits_of(part.format).name);
    }
    PAGODA_ASSIGN_OR_RETURN(WeightSegment segment, pack_segment(static_cast<CpuExec&>(exec), part));
    weight.rows += segment.rows;
    segments.push_back(std::move(segment));
  }
  weight.packed = std::make_shared<CpuWeight>(weight.cols, std::move(segments));
  return weight;
}

}  // namespace pagoda::cpu
