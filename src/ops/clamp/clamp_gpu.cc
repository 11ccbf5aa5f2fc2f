#include "backend/gpu/gpu_op.h"
#include "ops/clamp/clamp.h"
#include "ops/clamp/clamp_metal.h"
#include "ops/metal_sources.h"
#include "ops/rms_norm/float_run_gpu.h"

namespace pagoda::gpu {

Tensor clamp(Exec& exec, const Tensor& x, const ClampArgs& args) {
  const std::int64_t rows = x.extent(0), dim = x.extent(1);
  GpuOp op{.name = "clamp", .inputs = {x}, .outputs = {{x.dtype(), x.shape()}}};
  if (uses_kernels(exec)) {
    const bool is_wide = dim % 4 == 0 && rows_are_aligned(x);
    const auto elements = static_cast<double>(x.num_elements());
    op.launch = {
        .dispatches = {{.function = {&kClampMetal, "clamp_numbers", {is_wide ? "4" : "1"}},
                        .buffers = {input(0), output(0)},
                        .parameters = ClampParameters{.dim = static_cast<int>(dim),
                                                      .row_stride = static_cast<int>(x.stride(0)),
                                                      .limit = args.limit},
                        .num_groups = {num_groups_of(dim, is_wide ? 1024 : 256),
                                       static_cast<int>(rows), 1},
                        .num_threads = 256}},
        .flops = 2 * elements,
        .bytes = 8 * elements};
  } else {
    op.host = [args](Exec& host, std::span<const Tensor> in) {
      return std::vector<Tensor>{cpu::clamp(host, in[0], args)};
    };
  }
  return run(exec, std::move(op))[0];
}

}  // namespace pagoda::gpu
