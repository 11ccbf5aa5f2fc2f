#include "backend/gpu/gpu_op.h"
#include "ops/gate_heads/gate_heads.h"
#include "ops/gate_heads/gate_heads_metal.h"
#include "ops/metal_sources.h"
#include "ops/rms_norm/float_run_gpu.h"

namespace pagoda::gpu {

Tensor gate_heads(Exec& exec, const Tensor& x, const Tensor& gate) {
  const std::int64_t tokens = x.extent(0), dim = x.extent(1);
  GpuOp op{.name = "gate_heads", .inputs = {x, gate}, .outputs = {{x.dtype(), x.shape()}}};
  if (uses_kernels(exec)) {
    const bool is_wide = dim % 4 == 0 && rows_are_aligned(x);
    const auto elements = static_cast<double>(x.num_elements());
    op.launch = {
        .dispatches = {{.function = {&kGateHeadsMetal, "gate_heads", {is_wide ? "4" : "1"}},
                        .buffers = {input(0), input(1), output(0)},
                        .parameters =
                            GateHeadsParameters{.dim = static_cast<int>(dim),
                                                .width = static_cast<int>(dim / gate.extent(1))},
                        .num_groups = {num_groups_of(dim, is_wide ? 1024 : 256),
                                       static_cast<int>(tokens), 1},
                        .num_threads = 256}},
        .flops = 20 * elements,
        .bytes = 8 * elements + bytes_of(gate)};
  } else {
    op.host = [](Exec& host, std::span<const Tensor> in) {
      return std::vector<Tensor>{cpu::gate_heads(host, in[0], in[1])};
    };
  }
  return run(exec, std::move(op))[0];
}

}  // namespace pagoda::gpu
