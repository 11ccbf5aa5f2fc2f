#include "ops/apply_token_mask/apply_token_mask.h"

#include "backend/gpu/gpu_op.h"
#include "backend/gpu/template_argument.h"
#include "ops/apply_token_mask/apply_token_mask_metal.h"
#include "ops/metal_sources.h"

namespace pagoda::gpu {

Tensor apply_token_mask(Exec& exec, const Tensor& logits, const TokenMasks& masks) {
  constexpr int kNumThreads = 256;
  const std::int64_t vocab = logits.extent(1);
  GpuOp op{.name = "apply_token_mask",
           .inputs = {logits, masks.words, masks.mask_of},
           .outputs = {{logits.dtype(), logits.shape()}},
           .launch = {},
           .host = {}};
  if (uses_kernels(exec)) {
    op.launch = {.dispatches = {{.function = {&kApplyTokenMaskMetal,
                                              "apply_token_mask",
                                              {template_argument(logits.dtype())}},
                                 .buffers = {input(0), input(1), input(2), output(0)},
                                 .parameters =
                                     ApplyTokenMaskParameters{.vocab = static_cast<unsigned>(vocab),
                                                              .num_threads = kNumThreads},
                                 .num_groups = {num_groups_of(vocab, kNumThreads),
                                                static_cast<int>(logits.extent(0)), 1},
                                 .num_threads = kNumThreads}},
                 .bytes = 2 * bytes_of(logits)};
  } else {
    op.host = [](Exec& host, std::span<const Tensor> in) {
      return std::vector<Tensor>{
          cpu::apply_token_mask(host, in[0], {.words = in[1], .mask_of = in[2]})};
    };
  }
  return run(exec, std::move(op))[0];
}

}  // namespace pagoda::gpu
