#include "backend/mlx/mlx_op.h"
#include "ops/metal_sources.h"
#include "ops/rms_norm/float_run_mlx.h"
#include "ops/swiglu/swiglu.h"
#include "ops/swiglu/swiglu_metal.h"

namespace pagoda::mlx {

Tensor swiglu(Exec& exec, const Tensor& gate_up) {
  const std::int64_t tokens = gate_up.extent(0), dim = gate_up.extent(1) / 2;
  MlxOp op{
      .name = "swiglu", .inputs = {gate_up}, .outputs = {{gate_up.dtype(), Shape{tokens, dim}}}};
  if (uses_metal(exec)) {
    const bool is_wide = dim % 4 == 0 && rows_are_aligned(gate_up);
    const auto elements = static_cast<double>(tokens * dim);
    op.launch = {.dispatches = {{.function = {&kSwigluMetal, "swiglu", {is_wide ? "4" : "1"}},
                                 .buffers = {input(0), output(0)},
                                 .parameters = SwigluParameters{.dim = static_cast<int>(dim)},
                                 .num_groups = {num_groups_of(dim, is_wide ? 1024 : 256),
                                                static_cast<int>(tokens), 1},
                                 .num_threads = 256}},
                 .flops = 20 * elements,
                 .bytes = 12 * elements};
  } else {
    op.host = [](Exec& host, std::span<const Tensor> in) {
      return std::vector<Tensor>{cpu::swiglu(host, in[0])};
    };
  }
  return run(exec, std::move(op))[0];
}

}  // namespace pagoda::mlx
