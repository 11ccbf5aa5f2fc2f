#include "backend/gpu/gpu_op.h"
#include "backend/gpu/template_argument.h"
#include "ops/metal_sources.h"
#include "ops/rms_norm/float_run_gpu.h"
#include "ops/rope/rope.h"
#include "ops/rope/rope_head_gpu.h"
#include "ops/rope/rope_metal.h"

namespace pagoda::gpu {

Tensor rope_angles(Exec& exec, const Tensor& positions, const Tensor& inv_freq,
                   const RopeAnglesArgs& args) {
  const std::int64_t tokens = positions.extent(0), pairs = inv_freq.extent(0);
  GpuOp op{.name = "rope_angles",
           .inputs = {positions, inv_freq},
           .outputs = {{DType::kFloat32, {tokens, 2, pairs}}}};
  if (uses_kernels(exec)) {
    const auto angles = static_cast<double>(tokens * pairs);
    op.launch = {
        .dispatches = {{.function = {&kRopeMetal, "rope_angles"},
                        .buffers = {input(0), input(1), output(0)},
                        .parameters =
                            RopeAnglesParameters{
                                .num_tokens = static_cast<int>(tokens),
                                .num_pairs = static_cast<int>(pairs),
                                .factor = args.factor,
                                .growth = args.growth,
                                .growth_positions = args.growth_positions,
                            },
                        .num_groups = {num_groups_of(pairs, 32), num_groups_of(tokens, 8), 1},
                        .num_threads = 256}},
        .flops = 30 * angles,
        .bytes = 8 * angles};
  } else {
    op.host = [args](Exec& host, std::span<const Tensor> in) {
      return std::vector<Tensor>{cpu::rope_angles(host, in[0], in[1], args)};
    };
  }
  return run(exec, std::move(op))[0];
}

Tensor rope(Exec& exec, const Tensor& x, const Tensor& angles, const RopeArgs& args) {
  GpuOp op{.name = "rope", .inputs = {x, angles}, .outputs = {{x.dtype(), x.shape()}}};
  if (uses_kernels(exec)) {
    const auto elements = static_cast<double>(x.num_elements());
    op.launch = {
        .dispatches = {{.function = {&kRopeMetal, "rope", {template_argument(x.extent(2))}},
                        .buffers = {input(0), input(1), output(0)},
                        .parameters =
                            RopeParameters{
                                .num_heads = static_cast<int>(x.extent(1)),
                                .token_stride = static_cast<int>(x.stride(0)),
                                .head_stride = static_cast<int>(x.stride(1)),
                                .num_pairs = static_cast<int>(angles.extent(2)),
                                .is_halves = args.style == RopeStyle::kHalves,
                                .is_aligned = rows_are_aligned(x),
                            },
                        .num_groups = head_groups(x.extent(0), x.extent(1)),
                        .num_threads = 32 * kHeadsPerGroup}},
        .flops = 3 * elements,
        .bytes = 8 * elements};
  } else {
    op.host = [args](Exec& host, std::span<const Tensor> in) {
      return std::vector<Tensor>{cpu::rope(host, in[0], in[1], args)};
    };
  }
  return run(exec, std::move(op))[0];
}

}  // namespace pagoda::gpu
