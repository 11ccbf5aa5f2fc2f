#include "ops/gated_linear/gated_linear.h"

#include "backend/gpu/gpu_op.h"
#include "ops/linear/product_gpu.h"
#include "ops/metal_sources.h"

namespace pagoda::gpu {

Tensor gated_linear(Exec& exec, const Tensor& x, const Weight& weight,
                    const GatedLinearArgs& args) {
  const bool has_bias = args.bias.defined();
  const std::int64_t dim = weight.rows / 2;
  // If the formats of gate and up differ, the two products are not fused.
  if (uses_kernels(exec) && !gpu_weight(weight).is_gated()) {
    const auto [gate, up] = halves_of(gpu::linear(exec, x, weight, {.bias = args.bias}));
    return gpu::glu(exec, gate, up, args.glu);
  }
  GpuOp op{
      .name = "gated_linear", .inputs = {x}, .outputs = {{DType::kFloat32, {x.extent(0), dim}}}};
  if (has_bias) op.inputs.push_back(args.bias);
  if (!uses_kernels(exec)) {
    op.host = [weight, has_bias, glu = args.glu](Exec& host, std::span<const Tensor> in) {
      return std::vector<Tensor>{cpu::gated_linear(
          host, in[0], gpu_weight(weight).host, {.bias = has_bias ? in[1] : Tensor(), .glu = glu})};
    };
    return run(exec, std::move(op))[0];
  }
  static constexpr ProductKernels kKernels = {&kGatedLinearMetal, "gated_linear_few",
                                              "gated_linear_many", 2};
  const WeightSegment& gate = gpu_weight(weight).segments[0];
  op.launch.dispatches = {product_dispatch(exec, kKernels,
                                           {.segment = gate,
                                            .panels = input(has_bias ? 2 : 1),
                                            .bias = input(has_bias ? 1 : 0),
                                            .has_bias = has_bias,
                                            .out_stride = dim,
                                            .glu = args.glu},
                                           x, x.extent(0))};
  op.inputs.push_back(gate.panels);
  const OpCall call = product_call("gated_linear", x, weight);
  op.launch.flops = 2 * call.products;
  op.launch.bytes = call.read_bytes + 4.0 * static_cast<double>(x.extent(0) * dim);
  return run(exec, std::move(op))[0];
}

}  // namespace pagoda::gpu
