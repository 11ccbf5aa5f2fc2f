#include "ops/linear/prefetch_probe.h"

#include <algorithm>
#include <array>
#include <limits>

#include "backend/cpu/panel_layout.h"
#include "core/clock.h"
#include "ops/linear/kernel_choice.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace pagoda::cpu {
namespace {

constexpr std::int64_t kCols = 1024;
constexpr std::int64_t kBytesOfThread = std::int64_t{1} << 20;
constexpr int kNumTurns = 9;
// A way is chosen if its time is below this share of the usual way's. Other processes on the same
// cores usually change times by less.
constexpr double kClearly = 0.9;
constexpr std::array kWays = {WeightPrefetch::kPastCaches, WeightPrefetch::kSecondLevel,
                              WeightPrefetch::kSecondLevelHalf};

void drop_from_caches(const std::byte* bytes, std::int64_t count) {
#if defined(__x86_64__)
  for (std::int64_t at = 0; at < count; at += kLineBytes) _mm_clflush(bytes + at);
  _mm_mfence();
#else
  (void)bytes, (void)count;
#endif
}

// A product to time: a row of ones, and the same number of panels of zeros for each thread.
class Probe {
 public:
  Probe(CpuExec& exec, PanelKind kind)
      : pool_(exec.pool()), layout_{.kind = kind, .cols = kCols}, choice_(kernels_of(exec, kind)) {
    num_panels_ = std::max<std::int64_t>(kBytesOfThread / layout_.panel_bytes() / 2 * 2, 2);
    const std::int64_t threads = exec.num_threads();
    panels_ = exec.allocate(DType::kFloat32, {threads, num_panels_ * layout_.panel_bytes() / 4});
    out_ = exec.allocate(DType::kFloat32, {threads, num_panels_ * kPanelColumns});
    tile_bytes_ = choice_.kernels->tile_bytes(choice_.layout, 1, kCols);
    tile_ = exec.allocate(DType::kFloat32, {tile_bytes_ / 4});
    const Tensor x = exec.allocate(DType::kFloat32, {kCols});
    std::fill_n(x.data<float>(), kCols, 1.0f);
    const TileSource source = {
        .x = x.data<float>(), .x_stride = kCols, .num_rows = 1, .tile_rows = 1, .cols = kCols};
    choice_.kernels->pack_tile(choice_.layout, source, {0, kCols}, bytes_of(tile_, 0));
    each_thread([&](std::int64_t part) {
      std::fill_n(bytes_of(panels_, part), part_bytes(), std::byte{0});
    });
  }

  double seconds(WeightPrefetch way) {
    each_thread(
        [&](std::int64_t part) { drop_from_caches(bytes_of(panels_, part), part_bytes()); });
    const Clock::TimePoint start = Clock::system().now();
    each_thread([&](std::int64_t part) { multiply(part, way); });
    return seconds_between(start, Clock::system().now());
  }

 private:
  static std::byte* bytes_of(const Tensor& tensor, std::int64_t part) {
    return reinterpret_cast<std::byte*>(tensor.data<float>() + part * tensor.stride(0));
  }
  std::int64_t part_bytes() const { return num_panels_ * layout_.panel_bytes(); }

  template <class Body>
  void each_thread(const Body& body) {
    pool_.parallel_for(panels_.extent(0), 1, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t part = begin; part < end; ++part) body(part);
    });
  }

  void multiply(std::int64_t part, WeightPrefetch way) const {
    choice_.kernels->multiply({.kind = layout_.kind,
                               .layout = choice_.layout,
                               .tiles = bytes_of(tile_, 0),
                               .tile_bytes = tile_bytes_,
                               .tile_rows = 1,
                               .num_rows = 1,
                               .cols = kCols,
                               .panels = bytes_of(panels_, part),
                               .panel_bytes = layout_.panel_bytes(),
                               .header_area = layout_.header_area(),
                               .units_of_header = layout_.units_of_header,
                               .num_columns = out_.extent(1),
                               .out = out_.data<float>() + part * out_.stride(0),
                               .out_stride = out_.extent(1),
                               .prefetch = way},
                              0, num_panels_);
  }

  ThreadPool& pool_;
  PanelLayout layout_;
  KernelChoice choice_;
  std::int64_t num_panels_ = 0;  // of a thread
  std::int64_t tile_bytes_ = 0;
  Tensor panels_, out_, tile_;
};

}  // namespace

WeightPrefetch measure_prefetch(CpuExec& exec, PanelKind kind) {
  Probe probe(exec, kind);
  std::array<double, kWays.size()> best;
  best.fill(std::numeric_limits<double>::max());
  for (int turn = 0; turn < kNumTurns; ++turn) {
    for (std::size_t i = 0; i < kWays.size(); ++i) {
      best[i] = std::min(best[i], probe.seconds(kWays[i]));
    }
  }
  const auto usual = std::find(kWays.begin(), kWays.end(), weight_prefetch()) - kWays.begin();
  const auto fastest = std::min_element(best.begin(), best.end()) - best.begin();
  return kWays[best[fastest] < kClearly * best[usual] ? fastest : usual];
}

}  // namespace pagoda::cpu
