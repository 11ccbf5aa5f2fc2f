#include "backend/gpu/gpu_op.h"
#include "ops/metal_sources.h"
#include "ops/rms_norm/float_run_gpu.h"
#include "ops/rms_norm/rms_norm.h"
#include "ops/rms_norm/rms_norm_metal.h"
#include "ops/rms_norm/rms_norm_row_gpu.h"

namespace pagoda::gpu {
namespace {

GpuLaunch launch_of(const Tensor& x, const RmsNormArgs& args) {
  const bool has_heads = x.shape().rank() == 3;
  const std::int64_t num_heads = has_heads ? x.extent(1) : 1;
  const std::int64_t num_rows = x.extent(0) * num_heads;
  const RowSplit split(x.extent(-1));
  GpuDispatch dispatch{.buffers = {input(0), input(1), output(0)},
                       .parameters = RmsNormParameters{
                           .num_rows = static_cast<int>(num_rows),
                           .num_heads = static_cast<int>(num_heads),
                           .dim = static_cast<int>(x.extent(-1)),
                           .token_stride = static_cast<int>(x.stride(0)),
                           .head_stride = has_heads ? static_cast<int>(x.stride(1)) : 0,
                           .simd_groups_per_row = split.simd_groups_per_row,
                           .rows_per_group = split.rows_per_group,
                           .is_aligned = rows_are_aligned(x),
                           .eps = args.eps,
                       }};
  split.apply(&kRmsNormMetal, num_rows, dispatch);
  const auto elements = static_cast<double>(x.num_elements());
  return {.dispatches = {std::move(dispatch)}, .flops = 4 * elements, .bytes = 8 * elements};
}

}  // namespace

Tensor rms_norm(Exec& exec, const Tensor& x, const Tensor& weight, const RmsNormArgs& args) {
  GpuOp op{.name = "rms_norm", .inputs = {x, weight}, .outputs = {{x.dtype(), x.shape()}}};
  if (uses_kernels(exec)) {
    op.launch = launch_of(x, args);
  } else {
    op.host = [args](Exec& host, std::span<const Tensor> in) {
      return std::vector<Tensor>{cpu::rms_norm(host, in[0], in[1], args)};
    };
  }
  return run(exec, std::move(op))[0];
}

}  // namespace pagoda::gpu
