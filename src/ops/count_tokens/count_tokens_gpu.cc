// Counts are written in place, like the entries of a KV cache. backend/gpu/gpu_op.h says why no
// reader of the old counts sees them change.
#include "ops/count_tokens/count_tokens.h"

#include "backend/gpu/gpu_op.h"
#include "ops/count_tokens/count_tokens_metal.h"
#include "ops/metal_sources.h"

namespace pagoda::gpu {
namespace {

// Returns the launch of an op whose inputs are counts, the entries' three lists, and the histograms
// to clear, if any. Output 0 is the counts, in the memory of input 0.
GpuLaunch launch_of(const Tensor& counts, std::int64_t num_cleared, std::int64_t num_entries) {
  constexpr int kNumThreads = 256;
  const CountTokensParameters parameters = {.vocab = static_cast<unsigned>(counts.extent(1)),
                                            .num_entries = static_cast<unsigned>(num_entries),
                                            .num_threads = kNumThreads};
  GpuLaunch launch;
  if (num_cleared > 0) {
    launch.dispatches.push_back({.function = {&kCountTokensMetal, "count_tokens_clear"},
                                 .buffers = {input(4), output(0)},
                                 .parameters = parameters,
                                 .num_groups = {num_groups_of(counts.extent(1), kNumThreads),
                                                static_cast<int>(num_cleared), 1},
                                 .num_threads = kNumThreads});
  }
  if (num_entries > 0) {
    launch.dispatches.push_back({.function = {&kCountTokensMetal, "count_tokens"},
                                 .buffers = {input(1), input(2), input(3), output(0)},
                                 .parameters = parameters,
                                 .num_groups = {num_groups_of(num_entries, kNumThreads), 1, 1},
                                 .num_threads = kNumThreads});
  }
  launch.bytes = 4.0 * static_cast<double>(num_cleared * counts.extent(1) + 5 * num_entries);
  return launch;
}

}  // namespace

Tensor count_tokens(Exec& exec, const Tensor& counts, const Tensor& cleared,
                    const CountedTokens& tokens) {
  const std::int64_t num_cleared = cleared.defined() ? cleared.extent(0) : 0;
  const std::int64_t num_entries = tokens.histograms.extent(0);
  if (num_cleared == 0 && num_entries == 0) return counts;
  GpuOp op{.name = "count_tokens",
           .inputs = {counts, tokens.histograms, tokens.token_ids, tokens.times},
           .outputs = {{DType::kInt32, counts.shape(), /*memory_of=*/0}},
           .launch = {},
           .host = {}};
  if (num_cleared > 0) op.inputs.push_back(cleared);
  if (uses_kernels(exec)) {
    op.launch = launch_of(counts, num_cleared, num_entries);
  } else {
    op.host = [](Exec& host, std::span<const Tensor> in) {
      return std::vector<Tensor>{
          cpu::count_tokens(host, in[0], in.size() > 4 ? in[4] : Tensor(),
                            {.histograms = in[1], .token_ids = in[2], .times = in[3]})};
    };
  }
  return run(exec, std::move(op))[0];
}

}  // namespace pagoda::gpu
