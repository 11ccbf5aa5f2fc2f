#include "backend/gpu/gpu_op.h"
#include "ops/glu/glu.h"
#include "ops/glu/glu_metal.h"
#include "ops/metal_sources.h"
#include "ops/rms_norm/float_run_gpu.h"

namespace pagoda::gpu {

Tensor glu(Exec& exec, const Tensor& gate, const Tensor& up, const GluArgs& args) {
  const std::int64_t tokens = gate.extent(0), dim = gate.extent(1);
  GpuOp op{.name = "glu", .inputs = {gate, up}, .outputs = {{gate.dtype(), gate.shape()}}};
  if (uses_kernels(exec)) {
    const bool is_wide = dim % 4 == 0 && rows_are_aligned(gate) && rows_are_aligned(up);
    const auto elements = static_cast<double>(tokens * dim);
    op.launch = {
        .dispatches = {{.function = {&kGluMetal, "glu", {is_wide ? "4" : "1"}},
                        .buffers = {input(0), input(1), output(0)},
                        .parameters =
                            GluParameters{.dim = static_cast<int>(dim),
                                          .gate_stride = static_cast<int>(gate.stride(0)),
                                          .up_stride = static_cast<int>(up.stride(0)),
                                          .activation = static_cast<std::uint32_t>(args.activation),
                                          .alpha = args.alpha,
                                          .limit = args.limit},
                        .num_groups = {num_groups_of(dim, is_wide ? 1024 : 256),
                                       static_cast<int>(tokens), 1},
                        .num_threads = 256}},
        .flops = 20 * elements,
        .bytes = 12 * elements};
  } else {
    op.host = [args](Exec& host, std::span<const Tensor> in) {
      return std::vector<Tensor>{cpu::glu(host, in[0], in[1], args)};
    };
  }
  return run(exec, std::move(op))[0];
}

}  // namespace pagoda::gpu
