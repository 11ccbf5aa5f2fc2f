#include "ops/expert_linear/expert_linear.h"

#include "ops/expert_linear/expert_linear_metal.h"
#include "ops/expert_linear/expert_product_gpu.h"
#include "ops/metal_sources.h"

namespace pagoda::gpu {
namespace {

Tensor expert_linear_on_host(Exec& exec, const Tensor& x, const ExpertWeight& weight,
                             const Routing& routing, const Tensor& weights,
                             const ExpertLinearArgs& args) {
  GpuOp op{.name = "expert_linear",
           .inputs = {x, weights, routing.tokens, routing.places, routing.blocks},
           .outputs = {{DType::kFloat32, {weights.extent(0), weight.rows()}}}};
  // Returns the place of an optional input; -1: it is undefined.
  const auto place_of = [&](const Tensor& optional) {
    if (!optional.defined()) return -1;
    op.inputs.push_back(optional);
    return static_cast<int>(op.inputs.size()) - 1;
  };
  const int bias = place_of(args.bias), shared = place_of(args.shared);
  const int shared_gate = place_of(args.shared_gate);
  op.host = [weight, bias, shared, shared_gate, block_rows = routing.block_rows](
                Exec& host, std::span<const Tensor> in) {
    const auto at = [&](int place) { return place < 0 ? Tensor() : in[place]; };
    const ExpertWeight of_host = {gpu_weight(weight.all).host, weight.num_experts};
    const Routing host_routing = {in[2], in[3], in[4], block_rows};
    return std::vector<Tensor>{cpu::expert_linear(
        host, in[0], of_host, host_routing, in[1],
        {.bias = at(bias), .shared = at(shared), .shared_gate = at(shared_gate)})};
  };
  return run(exec, std::move(op))[0];
}

}  // namespace

int expert_block_rows(const Exec& exec, std::int64_t num_tokens) {
  if (!uses_kernels(exec)) return cpu::expert_block_rows(exec, num_tokens);
  // A token's experts are distinct, so that no expert has more rows than there are tokens.
  if (!takes_few_rows(exec, num_tokens)) return kTileRows;
  return num_tokens == 1 ? 1 : kFewRows;
}

GpuDispatch expert_product_dispatch(const Exec& exec, const ProductKernels& kernels,
                                    const SegmentProduct& product, const Tensor& x,
                                    const Routing& routing) {
  GpuDispatch dispatch = product_dispatch(exec, kernels, product, x, routing.block_rows);
  const int axis = takes_few_rows(exec, routing.block_rows) ? 1 : 0;  // of the grid
  dispatch.num_groups[axis] = static_cast<int>(routing.blocks.extent(0));
  return dispatch;
}

Tensor expert_rows(Exec& exec, const Tensor& x, const ExpertWeight& weight, const Routing& routing,
                   const Tensor& bias) {
  static constexpr ProductKernels kKernels = {&kExpertLinearMetal, "expert_linear_few",
                                              "expert_linear_many"};
  const bool has_bias = bias.defined();
  GpuOp op{.name = "expert_linear",
           .inputs = {x, routing.blocks},
           .outputs = {{DType::kFloat32, {x.extent(0), weight.rows()}}}};
  if (has_bias) op.inputs.push_back(bias);
  std::int64_t column = 0;
  for (const WeightSegment& segment : gpu_weight(weight.all).segments) {
    const GpuOperand panels = input(static_cast<int>(op.inputs.size()));
    op.inputs.push_back(segment.panels);
    GpuDispatch& dispatch =
        op.launch.dispatches.emplace_back(expert_product_dispatch(exec, kKernels,
                                                                  {.segment = segment,
                                                                   .panels = panels,
                                                                   .bias = input(has_bias ? 2 : 0),
                                                                   .has_bias = has_bias,
                                                                   .out_stride = weight.rows(),
                                                                   .out_column = column},
                                                                  x, routing));
    dispatch.buffers = {input(0), panels, input(has_bias ? 2 : 0), input(1), output(0)};
    column += segment.rows;
  }
  const OpCall call = expert_product_call("expert_linear", exec, x, weight, routing);
  op.launch.flops = 2 * call.products;
  op.launch.bytes = call.read_bytes + 4.0 * static_cast<double>(x.extent(0) * weight.rows());
  return run(exec, std::move(op))[0];
}

Tensor expert_linear(Exec& exec, const Tensor& x, const ExpertWeight& weight,
                     const Routing& routing, const Tensor& weights, const ExpertLinearArgs& args) {
  if (!uses_kernels(exec)) return expert_linear_on_host(exec, x, weight, routing, weights, args);
  constexpr int kColumns = 256;  // of a threadgroup
  const std::int64_t tokens = weights.extent(0), hidden = weight.rows();
  const Tensor products = expert_rows(exec, x, weight, routing, args.bias);
  GpuOp op{.name = "expert_linear_sum",
           .inputs = {products, routing.places, weights},
           .outputs = {{DType::kFloat32, {tokens, hidden}}}};
  const bool has_shared = args.shared.defined(), has_shared_gate = args.shared_gate.defined();
  if (has_shared) op.inputs.push_back(args.shared);
  if (has_shared_gate) op.inputs.push_back(args.shared_gate);
  op.launch = {
      .dispatches = {{.function = {&kExpertLinearMetal, "expert_linear_sum"},
                      .buffers = {input(0), input(1), input(2), input(has_shared ? 3 : 0),
                                  input(has_shared_gate ? 4 : 0), output(0)},
                      .parameters =
                          ExpertSumParameters{
                              .num_chosen = static_cast<std::uint32_t>(weights.extent(1)),
                              .hidden = static_cast<std::uint32_t>(hidden),
                              .has_shared = has_shared ? 1u : 0u,
                              .has_shared_gate = has_shared_gate ? 1u : 0u},
                      .num_groups = {num_groups_of(hidden, kColumns), static_cast<int>(tokens), 1},
                      .num_threads = kColumns}},
      .bytes = bytes_of(products)};
  return run(exec, std::move(op))[0];
}

}  // namespace pagoda::gpu
