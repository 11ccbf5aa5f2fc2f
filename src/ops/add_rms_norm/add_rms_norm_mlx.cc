#include "backend/mlx/mlx_op.h"
#include "ops/add_rms_norm/add_rms_norm.h"
#include "ops/add_rms_norm/add_rms_norm_metal.h"
#include "ops/metal_sources.h"
#include "ops/rms_norm/float_run_mlx.h"
#include "ops/rms_norm/rms_norm_row_mlx.h"

namespace pagoda::mlx {
namespace {

MetalLaunch launch_of(const Tensor& x, const Tensor& delta, const RmsNormArgs& args) {
  const RowSplit split(x.extent(1));
  MetalDispatch dispatch{.buffers = {input(0), input(1), input(2), output(0), output(1)},
                         .parameters = AddRmsNormParameters{
                             .num_rows = static_cast<int>(x.extent(0)),
                             .dim = static_cast<int>(x.extent(1)),
                             .simd_groups_per_row = split.simd_groups_per_row,
                             .rows_per_group = split.rows_per_group,
                             .is_aligned = rows_are_aligned(x) && rows_are_aligned(delta),
                             .eps = args.eps,
                         }};
  split.apply(&kAddRmsNormMetal, x.extent(0), dispatch);
  const auto elements = static_cast<double>(x.num_elements());
  return {.dispatches = {std::move(dispatch)}, .flops = 5 * elements, .bytes = 16 * elements};
}

}  // namespace

AddRmsNormResult add_rms_norm(Exec& exec, const Tensor& x, const Tensor& delta,
                              const Tensor& weight, const RmsNormArgs& args) {
  MlxOp op{.name = "add_rms_norm",
           .inputs = {x, delta, weight},
           .outputs = {{x.dtype(), x.shape()}, {x.dtype(), x.shape()}}};
  if (uses_metal(exec)) {
    op.launch = launch_of(x, delta, args);
  } else {
    op.host = [args](Exec& host, std::span<const Tensor> in) {
      AddRmsNormResult added = cpu::add_rms_norm(host, in[0], in[1], in[2], args);
      return std::vector<Tensor>{std::move(added.sum), std::move(added.normed)};
    };
  }
  std::vector<Tensor> results = run(exec, std::move(op));
  return {.sum = std::move(results[0]), .normed = std::move(results[1])};
}

}  // namespace pagoda::mlx
