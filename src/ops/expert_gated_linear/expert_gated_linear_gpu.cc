#include "ops/expert_gated_linear/expert_gated_linear.h"

#include "ops/expert_linear/expert_product_gpu.h"
#include "ops/metal_sources.h"
#include "ops/select_rows/select_rows.h"

namespace pagoda::gpu {
namespace {

Tensor expert_gated_linear_on_host(Exec& exec, const Tensor& x, const ExpertWeight& weight,
                                   const Routing& routing, const ExpertGatedLinearArgs& args) {
  const bool has_bias = args.bias.defined();
  GpuOp op{.name = "expert_gated_linear",
           .inputs = {x, routing.tokens, routing.places, routing.blocks},
           .outputs = {{DType::kFloat32, {routing.tokens.extent(0), weight.rows() / 2}}}};
  if (has_bias) op.inputs.push_back(args.bias);
  op.host = [weight, has_bias, glu = args.glu, block_rows = routing.block_rows](
                Exec& host, std::span<const Tensor> in) {
    const ExpertWeight of_host = {gpu_weight(weight.all).host, weight.num_experts};
    const Routing host_routing = {in[1], in[2], in[3], block_rows};
    return std::vector<Tensor>{cpu::expert_gated_linear(
        host, in[0], of_host, host_routing, {.bias = has_bias ? in[4] : Tensor(), .glu = glu})};
  };
  return run(exec, std::move(op))[0];
}

}  // namespace

Tensor expert_gated_linear(Exec& exec, const Tensor& x, const ExpertWeight& weight,
                           const Routing& routing, const ExpertGatedLinearArgs& args) {
  if (!uses_kernels(exec)) return expert_gated_linear_on_host(exec, x, weight, routing, args);
  if (!gpu_weight(weight.all).is_gated()) {  // the formats of gate and up differ
    const Tensor rows = gpu::select_rows(exec, x, routing.tokens);
    const auto [gate, up] = halves_of(expert_rows(exec, rows, weight, routing, args.bias));
    return gpu::glu(exec, gate, up, args.glu);
  }
  static constexpr ProductKernels kKernels = {&kExpertGatedLinearMetal, "expert_gated_linear_few",
                                              "expert_gated_linear_many", 2};
  const bool has_bias = args.bias.defined();
  const std::int64_t num_rows = routing.tokens.extent(0), dim = weight.rows() / 2;
  const WeightSegment& gate = gpu_weight(weight.all).segments[0];
  const GpuOperand bias = input(has_bias ? 4 : 0);
  GpuOp op{.name = "expert_gated_linear",
           .inputs = {x, gate.panels, routing.blocks, routing.tokens},
           .outputs = {{DType::kFloat32, {num_rows, dim}}}};
  if (has_bias) op.inputs.push_back(args.bias);
  GpuDispatch& dispatch =
      op.launch.dispatches.emplace_back(expert_product_dispatch(exec, kKernels,
                                                                {.segment = gate,
                                                                 .panels = input(1),
                                                                 .bias = bias,
                                                                 .has_bias = has_bias,
                                                                 .out_stride = dim,
                                                                 .glu = args.glu},
                                                                x, routing));
  dispatch.buffers = {input(0), input(1), bias, input(2), input(3), output(0)};
  const OpCall call = expert_product_call("expert_gated_linear", exec, x, weight, routing);
  op.launch.flops = 2 * call.products;
  op.launch.bytes = call.read_bytes + 4.0 * static_cast<double>(num_rows * dim);
  return run(exec, std::move(op))[0];
}

}  // namespace pagoda::gpu
