#include "backend/gpu/gpu_op.h"
#include "ops/add_rms_norm/add_rms_norm.h"
#include "ops/add_rms_norm/add_rms_norm_metal.h"
#include "ops/metal_sources.h"
#include "ops/rms_norm/float_run_gpu.h"
#include "ops/rms_norm/rms_norm_row_gpu.h"

namespace pagoda::gpu {
namespace {

GpuLaunch launch_of(const Tensor& x, const Tensor& delta, bool is_normed,
                    const AddRmsNormArgs& args) {
  const RowSplit split(x.extent(1));
  const GpuOperand normed = is_normed ? output(1) : output(0);
  GpuDispatch dispatch{.buffers = {input(0), input(1), input(2), input(3), output(0), normed},
                       .parameters = AddRmsNormParameters{
                           .num_rows = static_cast<int>(x.extent(0)),
                           .dim = static_cast<int>(x.extent(1)),
                           .simd_groups_per_row = split.simd_groups_per_row,
                           .rows_per_group = split.rows_per_group,
                           .is_aligned = rows_are_aligned(x) && rows_are_aligned(delta),
                           .is_normed = is_normed,
                           .norms_delta = args.delta_norm.defined(),
                           .delta_factor = args.delta_factor,
                           .sum_factor = args.sum_factor,
                           .eps = args.eps,
                       }};
  split.apply(&kAddRmsNormMetal, x.extent(0), dispatch);
  dispatch.threadgroup_bytes *= 2;  // for two norms
  const auto elements = static_cast<double>(x.num_elements());
  return {.dispatches = {std::move(dispatch)}, .flops = 5 * elements, .bytes = 16 * elements};
}

}  // namespace

AddRmsNormResult add_rms_norm(Exec& exec, const Tensor& x, const Tensor& delta,
                              const Tensor& weight, const AddRmsNormArgs& args) {
  const bool is_normed = weight.defined(), norms_delta = args.delta_norm.defined();
  // x is passed as a placeholder for weights that there are not.
  GpuOp op{.name = "add_rms_norm",
           .inputs = {x, delta, is_normed ? weight : x, norms_delta ? args.delta_norm : x},
           .outputs = {{x.dtype(), x.shape()}}};
  if (is_normed) op.outputs.push_back({x.dtype(), x.shape()});
  if (uses_kernels(exec)) {
    op.launch = launch_of(x, delta, is_normed, args);
  } else {
    AddRmsNormArgs host_args = args;
    host_args.delta_norm = {};  // it comes as an input
    op.host = [host_args, is_normed, norms_delta](Exec& host, std::span<const Tensor> in) {
      AddRmsNormArgs own = host_args;
      if (norms_delta) own.delta_norm = in[3];
      AddRmsNormResult sums =
          cpu::add_rms_norm(host, in[0], in[1], is_normed ? in[2] : Tensor(), own);
      std::vector<Tensor> results = {std::move(sums.sum)};
      if (is_normed) results.push_back(std::move(sums.normed));
      return results;
    };
  }
  const std::vector<Tensor> results = run(exec, std::move(op));
  return {.sum = results.front(), .normed = results.back()};
}

}  // namespace pagoda::gpu
