#include "backend/mlx/mlx_weight.h"

#include <algorithm>
#include <span>

#include "backend/host_threads.h"
#include "backend/mlx/mlx_exec.h"
#include "backend/mlx/mlx_op.h"

namespace pagoda::mlx {
namespace {

// Source bytes that are packed before their pages are released. This bounds the memory in which
// weights are resident twice, as source and packed.
constexpr std::int64_t kReleaseBytes = std::int64_t{4} << 20;

std::uint32_t* first_word(const Tensor& panels) {
  return whole_array(panels).data<std::uint32_t>() + panels.offset();
}

// Packs a part's rows into the segment, from its row `first` on.
void pack_part(HostThreads& threads, const HostTensor& part, std::int64_t first,
               const WeightSegment& segment) {
  std::uint32_t* const panels = first_word(segment.panels);
  const std::int64_t end = first + part.shape[0];
  const std::int64_t row_bytes = num_bytes(part) / part.shape[0];
  const std::int64_t batch = std::max<std::int64_t>(kReleaseBytes / (row_bytes * kPanelColumns), 1);
  for (std::int64_t begin = first / kPanelColumns; begin * kPanelColumns < end; begin += batch) {
    const auto rows_of = [&](std::int64_t panel) {
      return std::clamp(panel * kPanelColumns, first, end);
    };
    const std::int64_t last = std::min(begin + batch, (end + kPanelColumns - 1) / kPanelColumns);
    threads.parallel_for(last - begin, [&](std::int64_t i, int /*thread*/) {
      std::uint32_t* const panel = panels + (begin + i) * segment.panel_stride;
      for (std::int64_t row = rows_of(begin + i); row < rows_of(begin + i + 1); ++row) {
        pack_column(part, row - first, static_cast<int>(row % kPanelColumns), panel);
      }
    });
    if (part.storage && part.has_whole_rows()) {
      const std::int64_t from = rows_of(begin) - first, to = rows_of(last) - first;
      part.storage->release_pages(part.bytes.subspan(from * row_bytes, (to - from) * row_bytes));
    }
  }
  if (!part.has_whole_rows()) release_pages(part);
}

// Packs `parts`, which share a format, into panels of their own.
Result<WeightSegment> pack_segment(Exec& exec, std::span<const HostTensor> parts) {
  WeightSegment segment{.format = panel_format_of(parts[0])};
  for (const HostTensor& part : parts) segment.rows += part.shape[0];
  segment.panel_words = panel_words(segment.format, parts[0].shape[1]);
  segment.panel_stride = segment.panel_words;
  PAGODA_ASSIGN_OR_RETURN(
      segment.panels,
      exec.allocate_persistent(DType::kInt32, {segment.num_panels() * segment.panel_words}));
  HostThreads threads(exec);
  std::int64_t row = 0;
  for (const HostTensor& part : parts) {
    pack_part(threads, part, row, segment);
    row += part.shape[0];
  }
  return segment;
}

// Packs the parts of each expert: one, or a gate and an up part. A gate and an up part that share a
// format are interleaved.
Result<std::vector<WeightSegment>> pack_experts(Exec& exec, std::span<const HostTensor> parts,
                                                std::size_t parts_of_expert) {
  const std::size_t num_experts = parts.size() / parts_of_expert;
  const bool is_interleaved =
      parts_of_expert == 2 && panel_format_of(parts[0]) == panel_format_of(parts[1]);
  std::vector<WeightSegment> segments;
  for (const HostTensor& part : parts.first(parts_of_expert)) {
    WeightSegment segment{.format = panel_format_of(part), .rows = part.shape[0]};
    segment.num_experts = static_cast<int>(num_experts);
    segment.panel_words = panel_words(segment.format, part.shape[1]);
    segment.panel_stride = (is_interleaved ? 2 : 1) * segment.panel_words;
    segment.expert_words = segment.num_panels() * segment.panel_stride;
    const std::int64_t words = segment.num_experts * segment.expert_words;
    if (is_interleaved && !segments.empty()) {
      segment.panels = segments[0].panels.slice(0, segment.panel_words, words);
    } else {
      PAGODA_ASSIGN_OR_RETURN(segment.panels, exec.allocate_persistent(DType::kInt32, {words}));
    }
    segments.push_back(std::move(segment));
  }
  HostThreads threads(exec);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    WeightSegment of_expert = segments[i % parts_of_expert];
    const auto expert = static_cast<std::int64_t>(i / parts_of_expert);
    of_expert.panels =
        of_expert.panels.slice(0, expert * of_expert.expert_words, of_expert.panels.extent(0));
    pack_part(threads, parts[i], 0, of_expert);
  }
  return segments;
}

Result<std::vector<WeightSegment>> pack_panels(Exec& exec, std::span<const HostTensor> parts,
                                               WeightUse use) {
  if (is_of_experts(use)) return pack_experts(exec, parts, is_gated(use) ? 2 : 1);
  if (use == WeightUse::kGated && panel_format_of(parts[0]) == panel_format_of(parts[1])) {
    return pack_experts(exec, parts, parts.size());
  }
  std::vector<WeightSegment> segments;
  for (std::size_t begin = 0; begin < parts.size();) {
    std::size_t end = begin + 1;
    while (end < parts.size() && panel_format_of(parts[end]) == panel_format_of(parts[begin]))
      ++end;
    PAGODA_ASSIGN_OR_RETURN(WeightSegment segment,
                            pack_segment(exec, parts.subspan(begin, end - begin)));
    segments.push_back(std::move(segment));
    begin = end;
  }
  return segments;
}

}  // namespace

std::int64_t MlxWeight::num_bytes() const {
  if (host.defined()) return host.packed->num_bytes();
  std::int64_t words = 0;
  for (const WeightSegment& segment : segments) {
    words += segment.num_experts * segment.num_panels() * segment.panel_words;
  }
  return words * static_cast<std::int64_t>(sizeof(std::uint32_t));
}

void MlxWeight::set_next(const PackedWeight& next, const Exec& exec) {
  const auto& after = static_cast<const MlxWeight&>(next);
  if (host.defined()) host.packed->set_next(*after.host.packed, *mlx_exec(exec).host()->exec);
}

Result<Weight> prepare_weight(Exec& exec, std::span<const HostTensor> parts, WeightUse use) {
  auto packed = std::make_shared<MlxWeight>();
  Weight weight{.rows = 0, .cols = parts[0].shape[1], .packed = nullptr};
  for (const HostTensor& part : parts) weight.rows += part.shape[0];
  if (uses_metal(exec)) {
    PAGODA_ASSIGN_OR_RETURN(packed->segments, pack_panels(exec, parts, use));
  } else {
    PAGODA_ASSIGN_OR_RETURN(packed->host, cpu::prepare_weight(host_exec(exec), parts, use));
  }
  weight.packed = std::move(packed);
  return weight;
}

}  // namespace pagoda::mlx
