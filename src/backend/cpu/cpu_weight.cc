#include "backend/cpu/cpu_weight.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/cpu_exec.h"
#include "backend/cpu/panel_layout.h"

namespace pagoda::cpu {
namespace {

// Source bytes packed between two releases of their pages: bounds what is resident twice.
constexpr std::int64_t kReleaseBytes = std::int64_t{4} << 20;

// Rows [begin, end) of a matrix have been packed.
void release_rows(const HostTensor& matrix, std::int64_t begin, std::int64_t end) {
  if (!matrix.storage || matrix.format == WeightFormat::kAffine) return;
  const std::int64_t row_bytes = packed_bytes(matrix.format, matrix.shape[1]);
  matrix.storage->release_pages(matrix.bytes.subspan(begin * row_bytes, (end - begin) * row_bytes));
}

Result<WeightSegment> pack_segment(CpuExec& exec, const HostTensor& part) {
  const PanelLayout layout = panel_layout_of(part);
  WeightSegment segment{
      .layout = layout, .rows = part.shape[0], .panel_bytes = layout.panel_bytes(), .panels = {}};
  const std::int64_t num_panels = segment.num_panels();
  PAGODA_ASSIGN_OR_RETURN(
      segment.panels,
      exec.allocate_weight_bytes(static_cast<std::size_t>(num_panels * segment.panel_bytes)));
  const std::int64_t batch = std::max<std::int64_t>(kReleaseBytes / segment.panel_bytes, 1);
  const auto row_of = [&](std::int64_t panel) {
    return std::min(panel * kPanelColumns, segment.rows);
  };
  for (std::int64_t first = 0; first < num_panels; first += batch) {
    const std::int64_t last = std::min(first + batch, num_panels);
    exec.pool().parallel_for(last - first, 1, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t p = first + begin; p < first + end; ++p) {
        pack_panel(layout, part, row_of(p), static_cast<int>(row_of(p + 1) - row_of(p)),
                   segment.panels->data() + p * segment.panel_bytes);
      }
    });
    release_rows(part, row_of(first), row_of(last));
  }
  if (part.format == WeightFormat::kAffine) release_pages(part);
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
      unpack_column(segment.layout, segment.panel(row / kPanelColumns),
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
    PAGODA_ASSIGN_OR_RETURN(WeightSegment segment, pack_segment(static_cast<CpuExec&>(exec), part));
    weight.rows += segment.rows;
    segments.push_back(std::move(segment));
  }
  weight.packed = std::make_shared<CpuWeight>(std::move(segments));
  return weight;
}

}  // namespace pagoda::cpu
