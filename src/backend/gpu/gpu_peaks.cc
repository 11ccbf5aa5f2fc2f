#include "backend/gpu/gpu_peaks.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <span>
#include <string_view>
#include <utility>

#include "backend/gpu/gpu_op.h"
#include "backend/gpu/gpu_peaks_metal.h"
#include "backend/gpu/metal_sources.h"
#include "tensor/read_values.h"

namespace pagoda::gpu {
namespace {

constexpr int kThreads = 256;             // per threadgroup
constexpr int kWordsPerGroup = 32 << 10;  // words that a threadgroup reads
constexpr int kChains = 8;
constexpr int kLinks = 64;  // fma per chain and round
// Chains grow by a factor of 1.3 in 64 rounds and of 1e7 in a run of kMostOps ops. So a wrong
// number of rounds or ops shows in the values.
constexpr float kFactor = 1 + 0x1p-14f;
constexpr float kAdded = 0x1p-10f;

constexpr int kRuns = 5;
constexpr double kRunSeconds = 0.05;  // long enough that the host's part of a run is small
constexpr int kMostOps = 64;          // per run

// A sequence of ops that is timed. Each op reads the result of the op before it, so that no two run
// at the same time and share reads.
struct Chain {
  std::string_view name;
  Tensor start;
  std::function<Tensor(const Tensor& before)> op;
  std::function<bool(std::span<const std::byte> made, int num_ops)> is_right;
};

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Returns the seconds that a chain of `num_ops` ops took.
Result<double> time_ops(Exec& exec, const Chain& chain, int num_ops) {
  const double begin = now_s();
  Tensor last = chain.start;
  for (int i = 0; i < num_ops; ++i) last = chain.op(last);
  PAGODA_RETURN_IF_ERROR(exec.evaluate({&last, 1}));
  PAGODA_ASSIGN_OR_RETURN(const std::span<const std::byte> made, exec.read(last));
  const double seconds = now_s() - begin;
  if (!chain.is_right(made, num_ops))
    return unavailable("[device] {}: what this GPU made of {} is wrong",
                       backend_name(exec.backend()), chain.name);
  return seconds;
}

// Returns the seconds of one op.
Result<double> seconds_of(Exec& exec, const Chain& chain) {
  PAGODA_RETURN_IF_ERROR(time_ops(exec, chain, 1).status());  // builds the kernel
  PAGODA_ASSIGN_OR_RETURN(const double one, time_ops(exec, chain, 1));
  const int num_ops = static_cast<int>(std::clamp(kRunSeconds / one, 1.0, double{kMostOps}));
  double best = std::numeric_limits<double>::infinity();
  for (int run = 0; run < kRuns; ++run) {
    PAGODA_ASSIGN_OR_RETURN(const double seconds, time_ops(exec, chain, num_ops));
    best = std::min(best, seconds / num_ops);
  }
  return best;
}

// Returns kWordsPerGroup words per group; each word is its own index.
Tensor filled_words(Exec& exec, int num_groups) {
  GpuOp op{.name = "gpu_peaks_fill",
           .inputs = {},
           .outputs = {{DType::kInt32, {std::int64_t{num_groups} * kWordsPerGroup}}}};
  op.launch.dispatches = {{.function = {&kGpuPeaksMetal, "gpu_peaks_fill"},
                           .buffers = {output(0)},
                           .parameters = GpuPeaksParameters{.count = kWordsPerGroup},
                           .num_groups = {num_groups, 1, 1},
                           .num_threads = kThreads}};
  return run(exec, std::move(op))[0];
}

Result<double> seconds_of_reads(Exec& exec, int num_groups) {
  const Shape sums = {std::int64_t{num_groups} * (kThreads / 32)};
  PAGODA_ASSIGN_OR_RETURN(const Tensor start, exec.allocate_persistent(DType::kInt32, sums));
  const Tensor words = filled_words(exec, num_groups);
  const auto read = [&](const Tensor& before) {
    GpuOp op{
        .name = "gpu_peaks_read", .inputs = {words, before}, .outputs = {{DType::kInt32, sums}}};
    op.launch = {.dispatches = {{.function = {&kGpuPeaksMetal, "gpu_peaks_read"},
                                 .buffers = {input(0), input(1), output(0)},
                                 .parameters = GpuPeaksParameters{.count = kWordsPerGroup},
                                 .num_groups = {num_groups, 1, 1},
                                 .num_threads = kThreads}},
                 .bytes = 4.0 * kWordsPerGroup * num_groups};
    return run(exec, std::move(op))[0];
  };
  const auto is_right = [&](std::span<const std::byte> made, int num_ops) {
    std::uint32_t sum = 0;
    for (const std::uint32_t each : values_in<std::uint32_t>(made)) sum += each;
    const std::uint64_t count = std::uint64_t{kWordsPerGroup} * static_cast<unsigned>(num_groups);
    return sum == static_cast<std::uint32_t>(count / 2 * (count - 1) *
                                             static_cast<std::uint64_t>(num_ops));
  };
  return seconds_of(exec, {"reads", start, read, is_right});
}

// Returns the kernel's result for a lane after `num_ops` ops, computed on the host.
float chained(int num_rounds, int num_ops) {
  float mean = 0;
  for (int op = 0; op < num_ops; ++op) {
    float total = 0;
    for (int chain = 0; chain < kChains; ++chain) {
      float sum = mean + static_cast<float>(chain);
      for (int i = 0; i < num_rounds * kLinks; ++i) sum = std::fma(sum, kFactor, kAdded);
      total += sum;
    }
    mean = total / kChains;
  }
  return mean;
}

Result<double> seconds_of_chains(Exec& exec, int num_groups, int num_rounds) {
  const Shape lanes = {std::int64_t{num_groups} * kThreads};
  PAGODA_ASSIGN_OR_RETURN(const Tensor start, exec.allocate_persistent(DType::kFloat32, lanes));
  const auto chain = [&](const Tensor& before) {
    GpuOp op{.name = "gpu_peaks_fma", .inputs = {before}, .outputs = {{DType::kFloat32, lanes}}};
    op.launch = {.dispatches = {{.function = {&kGpuPeaksMetal, "gpu_peaks_fma"},
                                 .buffers = {input(0), output(0)},
                                 .parameters = GpuPeaksParameters{num_rounds, kFactor, kAdded},
                                 .num_groups = {num_groups, 1, 1},
                                 .num_threads = kThreads}},
                 .flops = 2.0 * kChains * kLinks * num_rounds * kThreads * num_groups};
    return run(exec, std::move(op))[0];
  };
  const auto is_right = [&](std::span<const std::byte> made, int num_ops) {
    const std::span<const float> values = values_in<float>(made);
    const float expected = chained(num_rounds, num_ops);
    return std::all_of(values.begin(), values.end(),
                       [&](float value) { return value == expected; });
  };
  return seconds_of(exec, {"chains of fma", start, chain, is_right});
}

}  // namespace

Result<GpuPeaks> measure_gpu_peaks(Exec& exec, const GpuPeakWork& work) {
  const int read_groups = num_groups_of(work.read_bytes, 4 * kWordsPerGroup);
  PAGODA_ASSIGN_OR_RETURN(const double read_s, seconds_of_reads(exec, read_groups));
  PAGODA_ASSIGN_OR_RETURN(const double fma_s,
                          seconds_of_chains(exec, work.fma_groups, work.fma_rounds));
  constexpr double kGiga = 1e9;
  const double flops =
      2.0 * kChains * kLinks * work.fma_rounds * kThreads * static_cast<double>(work.fma_groups);
  return GpuPeaks{.read_gb_per_s = 4.0 * kWordsPerGroup * read_groups / read_s / kGiga,
                  .fma_gflop_per_s = flops / fma_s / kGiga};
}

Result<std::optional<GpuPeaks>> gpu_peaks(Exec& exec) {
  if (!uses_kernels(exec)) return std::optional<GpuPeaks>();
  PAGODA_ASSIGN_OR_RETURN(const GpuPeaks peaks, measure_gpu_peaks(exec));
  return std::optional<GpuPeaks>(peaks);
}

}  // namespace pagoda::gpu
