#include "backend/gpu/gpu_op.h"
#include "backend/gpu/template_argument.h"
#include "ops/metal_sources.h"
#include "ops/rms_norm/float_run_gpu.h"
#include "ops/rms_norm_rope/rms_norm_rope.h"
#include "ops/rms_norm_rope/rms_norm_rope_metal.h"
#include "ops/rope/rope_head_gpu.h"

namespace pagoda::gpu {

Tensor rms_norm_rope(Exec& exec, const Tensor& x, const Tensor& weight, const Tensor& angles,
                     const RmsNormRopeArgs& args) {
  GpuOp op{
      .name = "rms_norm_rope", .inputs = {x, weight, angles}, .outputs = {{x.dtype(), x.shape()}}};
  if (uses_kernels(exec)) {
    const auto elements = static_cast<double>(x.num_elements());
    op.launch = {.dispatches = {{.function = {&kRmsNormRopeMetal,
                                              "rms_norm_rope",
                                              {template_argument(x.extent(2))}},
                                 .buffers = {input(0), input(1), input(2), output(0)},
                                 .parameters =
                                     RmsNormRopeParameters{
                                         .num_heads = static_cast<int>(x.extent(1)),
                                         .token_stride = static_cast<int>(x.stride(0)),
                                         .head_stride = static_cast<int>(x.stride(1)),
                                         .num_pairs = static_cast<int>(angles.extent(2)),
                                         .is_halves = args.rope.style == RopeStyle::kHalves,
                                         .is_aligned = rows_are_aligned(x),
                                         .eps = args.norm.eps,
                                     },
                                 .num_groups = head_groups(x.extent(0), x.extent(1)),
                                 .num_threads = 32 * kHeadsPerGroup}},
                 .flops = 7 * elements,
                 .bytes = 8 * elements};
  } else {
    op.host = [args](Exec& host, std::span<const Tensor> in) {
      return std::vector<Tensor>{cpu::rms_norm_rope(host, in[0], in[1], in[2], args)};
    };
  }
  return run(exec, std::move(op))[0];
}

}  // namespace pagoda::gpu
