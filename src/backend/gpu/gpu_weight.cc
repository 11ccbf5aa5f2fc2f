#include "backend/gpu/gpu_weight.h"

#include <algorithm>
#include <span>

#include "backend/gpu/gpu_exec.h"
#include "backend/host_threads.h"

namespace pagoda::gpu {
namespace {

// Source bytes that are packed before their pages are released. This bounds the memory in which
// weights are resident twice, as source and packed.
constexpr std::int64_t kReleaseBytes = std::int64_t{4} << 20;

// A matrix that becomes rows of panels.
struct Source {
  const HostTensor* matrix = nullptr;
  std::int64_t first_row = 0;   // in the panels
  std::int64_t first_word = 0;  // of its panels, in units of a stride: gates and up parts alternate

  std::int64_t end_row() const { return first_row + matrix->shape[0]; }
  std::int64_t row_bytes() const { return num_bytes(*matrix) / matrix->shape[0]; }
};

// Packs the sources' rows of panel `index` into the words of its stride.
void pack_panel(std::span<const Source> sources, std::int64_t index, std::uint32_t* words) {
  for (const Source& source : sources) {
    const std::int64_t begin = std::max(index * kPanelColumns, source.first_row);
    const std::int64_t end = std::min((index + 1) * kPanelColumns, source.end_row());
    for (std::int64_t row = begin; row < end; ++row) {
      pack_column(*source.matrix, row - source.first_row, static_cast<int>(row % kPanelColumns),
                  words + source.first_word);
    }
  }
}

// Releases the pages of the rows that panels [begin, end) hold.
void release_rows(const Source& source, std::int64_t begin, std::int64_t end) {
  const HostTensor& matrix = *source.matrix;
  if (!matrix.storage || !matrix.has_whole_rows()) return;
  const auto row_of = [&](std::int64_t panel) {
    return std::clamp(panel * kPanelColumns, source.first_row, source.end_row()) - source.first_row;
  };
  const std::int64_t from = row_of(begin), to = row_of(end);
  if (from == to) return;
  matrix.storage->release_pages(
      matrix.bytes.subspan(from * source.row_bytes(), (to - from) * source.row_bytes()));
}

// Packs sources into panels [0, num_panels) of a tensor, of which the first begins at `first_word`.
Status pack_sources(Exec& exec, HostThreads& threads, std::span<const Source> sources,
                    const WeightSegment& segment, std::int64_t first_word) {
  std::int64_t row_bytes = 0;
  for (const Source& source : sources) row_bytes += source.row_bytes();
  const std::int64_t batch = std::max<std::int64_t>(kReleaseBytes / (row_bytes * kPanelColumns), 1);
  for (std::int64_t begin = 0; begin < segment.num_panels(); begin += batch) {
    const std::int64_t end = std::min(begin + batch, segment.num_panels());
    PAGODA_RETURN_IF_ERROR(gpu_exec(exec).fill(
        segment.panels, first_word + begin * segment.panel_stride,
        (end - begin) * segment.panel_stride, [&](std::uint32_t* words) {
          threads.parallel_for(end - begin, [&](std::int64_t i, int /*thread*/) {
            pack_panel(sources, begin + i, words + i * segment.panel_stride);
          });
        }));
    for (const Source& source : sources) release_rows(source, begin, end);
  }
  for (const Source& source : sources) {
    if (!source.matrix->has_whole_rows()) release_pages(*source.matrix);
  }
  return ok_status();
}

// Packs `parts`, which share a format, into panels of their own.
Result<WeightSegment> pack_segment(Exec& exec, std::span<const HostTensor> parts) {
  WeightSegment segment{.format = panel_format_of(parts[0])};
  std::vector<Source> sources;
  for (const HostTensor& part : parts) {
    sources.push_back({.matrix = &part, .first_row = segment.rows});
    segment.rows += part.shape[0];
  }
  segment.panel_words = panel_words(segment.format, parts[0].shape[1]);
  segment.panel_stride = segment.panel_words;
  PAGODA_ASSIGN_OR_RETURN(
      segment.panels,
      exec.allocate_persistent(DType::kInt32, {segment.num_panels() * segment.panel_words}));
  HostThreads threads(exec);
  PAGODA_RETURN_IF_ERROR(pack_sources(exec, threads, sources, segment, 0));
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
  const std::size_t together = is_interleaved ? 2 : 1;
  for (std::size_t i = 0; i < parts.size(); i += together) {
    const WeightSegment& segment = segments[i % parts_of_expert];
    std::vector<Source> sources;
    for (std::size_t j = 0; j < together; ++j) {
      sources.push_back({.matrix = &parts[i + j],
                         .first_word = static_cast<std::int64_t>(j) * segment.panel_words});
    }
    const auto expert = static_cast<std::int64_t>(i / parts_of_expert);
    PAGODA_RETURN_IF_ERROR(
        pack_sources(exec, threads, sources, segment, expert * segment.expert_words));
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

std::int64_t GpuWeight::num_bytes() const {
  if (host.defined()) return host.packed->num_bytes();
  std::int64_t words = 0;
  for (const WeightSegment& segment : segments) {
    words += segment.num_experts * segment.num_panels() * segment.panel_words;
  }
  return words * static_cast<std::int64_t>(sizeof(std::uint32_t));
}

void GpuWeight::set_next(const PackedWeight& next, const Exec& exec) {
  const auto& after = static_cast<const GpuWeight&>(next);
  if (host.defined()) host.packed->set_next(*after.host.packed, host_exec(exec));
}

Result<Weight> prepare_weight(Exec& exec, std::span<const HostTensor> parts, WeightUse use) {
  auto packed = std::make_shared<GpuWeight>();
  Weight weight{.rows = 0, .cols = parts[0].shape[1], .packed = nullptr};
  for (const HostTensor& part : parts) weight.rows += part.shape[0];
  if (uses_kernels(exec)) {
    PAGODA_ASSIGN_OR_RETURN(packed->segments, pack_panels(exec, parts, use));
  } else {
    PAGODA_ASSIGN_OR_RETURN(packed->host, cpu::prepare_weight(host_exec(exec), parts, use));
  }
  weight.packed = std::move(packed);
  return weight;
}

}  // namespace pagoda::gpu
