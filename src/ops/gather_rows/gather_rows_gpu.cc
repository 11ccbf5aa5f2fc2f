#include "backend/gpu/gpu_op.h"
#include "backend/gpu/gpu_weight.h"
#include "ops/gather_rows/gather_rows.h"
#include "ops/gather_rows/gather_rows_metal.h"
#include "ops/metal_sources.h"

namespace pagoda::gpu {

Tensor gather_rows(Exec& exec, const Weight& weight, const Tensor& ids,
                   const GatherRowsArgs& args) {
  const std::int64_t n = ids.extent(0);
  GpuOp op{
      .name = "gather_rows", .inputs = {ids}, .outputs = {{DType::kFloat32, {n, weight.cols}}}};
  if (!uses_kernels(exec)) {
    op.host = [weight, args](Exec& host, std::span<const Tensor> in) {
      return std::vector<Tensor>{cpu::gather_rows(host, gpu_weight(weight).host, in[0], args)};
    };
    return run(exec, std::move(op))[0];
  }
  constexpr int kThreads = 256;
  const auto word = [](std::int64_t value) { return static_cast<std::uint32_t>(value); };
  std::int64_t first_row = 0;
  for (const WeightSegment& segment : gpu_weight(weight).segments) {
    op.launch.dispatches.push_back(
        {.function = {&kGatherRowsMetal, "gather_rows", template_arguments(segment.format)},
         .buffers = {input(static_cast<int>(op.inputs.size())), input(0), output(0)},
         .parameters = GatherRowsParameters{.width = word(weight.cols),
                                            .first_row = word(first_row),
                                            .rows = word(segment.rows),
                                            .panel_stride = word(segment.panel_stride),
                                            .ids_stride = word(ids.stride(0)),
                                            .factor = args.factor},
         .num_groups = {static_cast<int>(n), num_groups_of(weight.cols, kThreads), 1},
         .num_threads = kThreads});
    op.inputs.push_back(segment.panels);
    first_row += segment.rows;
  }
  const auto elements = static_cast<double>(n * weight.cols);
  op.launch.flops = 4 * elements;
  op.launch.bytes = 8 * elements;
  return run(exec, std::move(op))[0];
}

}  // namespace pagoda::gpu
