#include "ops/apply_penalties/apply_penalties.h"

#include "backend/gpu/gpu_op.h"
#include "backend/gpu/template_argument.h"
#include "ops/apply_penalties/apply_penalties_metal.h"
#include "ops/metal_sources.h"

namespace pagoda::gpu {
namespace {

GpuLaunch launch_of(const Tensor& logits) {
  constexpr int kNumThreads = 256;
  const std::int64_t vocab = logits.extent(1);
  return {
      .dispatches = {{.function = {&kApplyPenaltiesMetal,
                                   "apply_penalties",
                                   {template_argument(logits.dtype())}},
                      .buffers = {input(0), input(1), input(2), input(3), input(4), input(5),
                                  output(0)},
                      .parameters = ApplyPenaltiesParameters{.vocab = static_cast<unsigned>(vocab),
                                                             .num_threads = kNumThreads},
                      .num_groups = {num_groups_of(vocab, kNumThreads),
                                     static_cast<int>(logits.extent(0)), 1},
                      .num_threads = kNumThreads}},
      .bytes = 2 * bytes_of(logits) + 4.0 * static_cast<double>(logits.num_elements())};
}

}  // namespace

Tensor apply_penalties(Exec& exec, const Tensor& logits, const SeenTokenCounts& seen,
                       const PenaltyFactors& factors) {
  GpuOp op{.name = "apply_penalties",
           .inputs = {logits, seen.counts, seen.histogram_of, factors.repetition, factors.frequency,
                      factors.presence},
           .outputs = {{logits.dtype(), logits.shape()}},
           .launch = {},
           .host = {}};
  if (uses_kernels(exec)) {
    op.launch = launch_of(logits);
  } else {
    op.host = [](Exec& host, std::span<const Tensor> in) {
      return std::vector<Tensor>{
          cpu::apply_penalties(host, in[0], {.counts = in[1], .histogram_of = in[2]},
                               {.repetition = in[3], .frequency = in[4], .presence = in[5]})};
    };
  }
  return run(exec, std::move(op))[0];
}

}  // namespace pagoda::gpu
