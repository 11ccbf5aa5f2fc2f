#include "backend/gpu/gpu_op.h"
#include "ops/metal_sources.h"
#include "ops/rms_norm/float_run_gpu.h"
#include "ops/select_rows/select_rows.h"
#include "ops/select_rows/select_rows_metal.h"

namespace pagoda::gpu {

Tensor select_rows(Exec& exec, const Tensor& x, const Tensor& rows) {
  const std::int64_t count = rows.extent(0), dim = x.extent(1);
  GpuOp op{.name = "select_rows", .inputs = {x, rows}, .outputs = {{x.dtype(), Shape{count, dim}}}};
  if (uses_kernels(exec)) {
    const bool is_wide = dim % 4 == 0 && rows_are_aligned(x);
    op.launch = {
        .dispatches = {{.function = {&kSelectRowsMetal, "select_rows", {is_wide ? "4" : "1"}},
                        .buffers = {input(0), input(1), output(0)},
                        .parameters = SelectRowsParameters{.dim = static_cast<int>(dim)},
                        .num_groups = {num_groups_of(dim, is_wide ? 1024 : 256),
                                       static_cast<int>(count), 1},
                        .num_threads = 256}},
        .bytes = 8.0 * static_cast<double>(count * dim)};
  } else {
    op.host = [](Exec& host, std::span<const Tensor> in) {
      return std::vector<Tensor>{cpu::select_rows(host, in[0], in[1])};
    };
  }
  return run(exec, std::move(op))[0];
}

}  // namespace pagoda::gpu
