#include "backend/mlx/mlx_op.h"
#include "ops/glu/glu.h"
#include "ops/glu/glu_metal.h"
#include "ops/metal_sources.h"
#include "ops/rms_norm/float_run_mlx.h"

namespace pagoda::mlx {

Tensor glu(Exec& exec, const Tensor& gate_up, const GluArgs& args) {
  const std::int64_t tokens = gate_up.extent(0), dim = gate_up.extent(1) / 2;
  MlxOp op{.name = "glu", .inputs = {gate_up}, .outputs = {{gate_up.dtype(), Shape{tokens, dim}}}};
  if (uses_metal(exec)) {
    const bool is_wide = dim % 4 == 0 && rows_are_aligned(gate_up);
    const auto elements = static_cast<double>(tokens * dim);
    op.launch = {.dispatches = {{.function = {&kGluMetal, "glu", {is_wide ? "4" : "1"}},
                                 .buffers = {input(0), output(0)},
                                 .parameters = GluParameters{.dim = static_cast<int>(dim),
                                                             .is_gelu = args.activation ==
                                                                        Activation::kGeluTanh},
                                 .num_groups = {num_groups_of(dim, is_wide ? 1024 : 256),
                                                static_cast<int>(tokens), 1},
                                 .num_threads = 256}},
                 .flops = 20 * elements,
                 .bytes = 12 * elements};
  } else {
    op.host = [args](Exec& host, std::span<const Tensor> in) {
      return std::vector<Tensor>{cpu::glu(host, in[0], args)};
    };
  }
  return run(exec, std::move(op))[0];
}

}  // namespace pagoda::mlx
