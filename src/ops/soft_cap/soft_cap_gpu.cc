#include "backend/gpu/gpu_op.h"
#include "ops/metal_sources.h"
#include "ops/rms_norm/float_run_gpu.h"
#include "ops/soft_cap/soft_cap.h"
#include "ops/soft_cap/soft_cap_metal.h"

namespace pagoda::gpu {

Tensor soft_cap(Exec& exec, const Tensor& x, const SoftCapArgs& args) {
  const std::int64_t rows = x.extent(0), dim = x.extent(1);
  GpuOp op{.name = "soft_cap", .inputs = {x}, .outputs = {{x.dtype(), x.shape()}}};
  if (uses_kernels(exec)) {
    const bool is_wide = dim % 4 == 0 && rows_are_aligned(x);
    const auto elements = static_cast<double>(x.num_elements());
    op.launch = {.dispatches = {{.function = {&kSoftCapMetal, "soft_cap", {is_wide ? "4" : "1"}},
                                 .buffers = {input(0), output(0)},
                                 .parameters = SoftCapParameters{.dim = static_cast<int>(dim),
                                                                 .cap = args.cap},
                                 .num_groups = {num_groups_of(dim, is_wide ? 1024 : 256),
                                                static_cast<int>(rows), 1},
                                 .num_threads = 256}},
                 .flops = 20 * elements,
                 .bytes = 8 * elements};
  } else {
    op.host = [args](Exec& host, std::span<const Tensor> in) {
      return std::vector<Tensor>{cpu::soft_cap(host, in[0], args)};
    };
  }
  return run(exec, std::move(op))[0];
}

}  // namespace pagoda::gpu
