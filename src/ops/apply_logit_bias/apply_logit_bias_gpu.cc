#include "ops/apply_logit_bias/apply_logit_bias.h"

#include "backend/gpu/gpu_op.h"
#include "backend/gpu/template_argument.h"
#include "ops/apply_logit_bias/apply_logit_bias_metal.h"
#include "ops/metal_sources.h"

namespace pagoda::gpu {
namespace {

GpuLaunch launch_of(const Tensor& logits, std::int64_t num_entries) {
  constexpr int kNumThreads = 256;
  constexpr int kSlice = 4096;  // a multiple of 32
  const std::int64_t vocab = logits.extent(1);
  return {
      .dispatches = {{.function = {&kApplyLogitBiasMetal,
                                   "apply_logit_bias",
                                   {template_argument(logits.dtype())}},
                      .buffers = {input(0), input(1), input(2), input(3), output(0)},
                      .parameters = ApplyLogitBiasParameters{.vocab = static_cast<unsigned>(vocab),
                                                             .slice = kSlice,
                                                             .num_entries =
                                                                 static_cast<unsigned>(num_entries),
                                                             .num_threads = kNumThreads},
                      .num_groups = {num_groups_of(vocab, kSlice),
                                     static_cast<int>(logits.extent(0)), 1},
                      .num_threads = kNumThreads,
                      .threadgroup_bytes = kSlice / 8}},
      .bytes = 2 * bytes_of(logits)};
}

}  // namespace

Tensor apply_logit_bias(Exec& exec, const Tensor& logits, const LogitEntries& entries,
                        const Tensor& biases) {
  if (biases.extent(0) == 0) return logits;
  GpuOp op{.name = "apply_logit_bias",
           .inputs = {logits, entries.rows, entries.token_ids, biases},
           .outputs = {{logits.dtype(), logits.shape()}},
           .launch = {},
           .host = {}};
  if (uses_kernels(exec)) {
    op.launch = launch_of(logits, biases.extent(0));
  } else {
    op.host = [](Exec& host, std::span<const Tensor> in) {
      return std::vector<Tensor>{
          cpu::apply_logit_bias(host, in[0], {.rows = in[1], .token_ids = in[2]}, in[3])};
    };
  }
  return run(exec, std::move(op))[0];
}

}  // namespace pagoda::gpu
