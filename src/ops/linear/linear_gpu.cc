#include <algorithm>

#include "backend/gpu/gpu_op.h"
#include "backend/gpu/matrix_units.h"
#include "ops/linear/linear.h"
#include "ops/linear/linear_metal.h"
#include "ops/linear/product_gpu.h"
#include "ops/metal_sources.h"
#include "ops/rms_norm/float_run_gpu.h"

namespace pagoda::gpu {
namespace {

constexpr int kMaxChunks = 8;  // in products of few rows, a threadgroup has a SIMD group for each
constexpr int kTileColumns = 64;
// few_rows.metal.h: floats of x and of its sums for a row of a SIMD group; floats of the levels.
constexpr int kFloatsOfRow = 128 + 8;
constexpr int kFloatsOfLevels = 16;
// many_rows.metal.h: levels, x, codes, scales and offsets, sums of x, parts.
constexpr int kFloatsOfTile = 16 + 32 * 36 + 64 * 36 + 256 + 64 + 512;

LinearParameters parameters_of(const SegmentProduct& product, const Tensor& x) {
  const auto word = [](std::int64_t value) { return static_cast<std::uint32_t>(value); };
  const WeightSegment& segment = product.segment;
  return {.rows = word(x.extent(0)),
          .width = word(x.extent(1)),
          .x_stride = word(x.stride(0)),
          .x_is_aligned = rows_are_aligned(x) ? 1u : 0u,
          .cols = word(segment.rows),
          .panel_words = word(segment.panel_words),
          .panel_stride = word(segment.panel_stride),
          .chunk = word(product_chunk(segment.format, x.extent(1))),
          .out_stride = word(product.out_stride),
          .out_column = word(product.out_column),
          .has_bias = product.has_bias ? 1u : 0u,
          .expert_words = word(segment.expert_words),
          .activation = static_cast<std::uint32_t>(product.glu.activation),
          .alpha = product.glu.alpha,
          .limit = product.glu.limit};
}

}  // namespace

std::int64_t product_chunk(const PanelFormat& format, std::int64_t cols) {
  const std::int64_t units = (cols + format.unit() - 1) / format.unit();
  return (units + kMaxChunks - 1) / kMaxChunks * format.unit();
}

bool takes_few_rows(const Exec& exec, std::int64_t num_rows) {
  return num_rows <= kFewRows && matrix_units(exec) != MatrixUnits::kOtherOrder;
}

GpuDispatch product_dispatch(const Exec& exec, const ProductKernels& kernels,
                             const SegmentProduct& product, const Tensor& x,
                             std::int64_t num_rows) {
  const WeightSegment& segment = product.segment;
  const int num_panels = static_cast<int>(segment.num_panels());
  GpuDispatch dispatch = {
      .function = {kernels.source, kernels.many, template_arguments(segment.format)},
      .buffers = {input(0), product.panels, product.bias, output(0)},
      .parameters = parameters_of(product, x)};
  if (takes_few_rows(exec, num_rows)) {
    const int rows = num_rows == 1 ? 1 : kFewRows;
    const int chunks = num_groups_of(x.extent(1), product_chunk(segment.format, x.extent(1)));
    dispatch.function.name = kernels.few;
    dispatch.function.arguments.push_back(num_rows == 1 ? "1" : "4");
    dispatch.num_groups = {num_panels, 1, 1};
    dispatch.num_threads = 32 * chunks;
    dispatch.threadgroup_bytes =
        static_cast<int>(sizeof(float)) * (kFloatsOfLevels + kFloatsOfRow * rows * chunks);
    return dispatch;
  }
  dispatch.function.arguments.push_back(matrix_units(exec) == MatrixUnits::kUnusable ? "0" : "1");
  // Threadgroups that share weights are neighbours.
  const int panels_of_tile = kTileColumns / kPanelColumns / kernels.panels;
  dispatch.num_groups = {num_groups_of(num_rows, kTileRows),
                         num_groups_of(num_panels, panels_of_tile), 1};
  dispatch.num_threads = kTileColumns;
  dispatch.threadgroup_bytes = static_cast<int>(sizeof(float)) * kFloatsOfTile;
  return dispatch;
}

Tensor linear(Exec& exec, const Tensor& x, const Weight& weight, const LinearArgs& args) {
  const bool has_bias = args.bias.defined();
  GpuOp op{
      .name = "linear", .inputs = {x}, .outputs = {{DType::kFloat32, {x.extent(0), weight.rows}}}};
  if (has_bias) op.inputs.push_back(args.bias);
  if (!uses_kernels(exec)) {
    op.host = [weight, has_bias](Exec& host, std::span<const Tensor> in) {
      const LinearArgs host_args{.bias = has_bias ? in[1] : Tensor(), .out_float32 = true};
      return std::vector<Tensor>{cpu::linear(host, in[0], gpu_weight(weight).host, host_args)};
    };
    return run(exec, std::move(op))[0];
  }
  static constexpr ProductKernels kKernels = {&kLinearMetal, "linear_few", "linear_many"};
  std::int64_t column = 0;
  for (const WeightSegment& segment : gpu_weight(weight).segments) {
    op.launch.dispatches.push_back(
        product_dispatch(exec, kKernels,
                         {.segment = segment,
                          .panels = input(static_cast<int>(op.inputs.size())),
                          .bias = input(has_bias ? 1 : 0),
                          .has_bias = has_bias,
                          .out_stride = weight.rows,
                          .out_column = column},
                         x, x.extent(0)));
    op.inputs.push_back(segment.panels);
    column += segment.rows;
  }
  const OpCall call = product_call("linear", x, weight);
  op.launch.flops = 2 * call.products;
  op.launch.bytes = call.read_bytes + 4.0 * static_cast<double>(x.extent(0) * weight.rows);
  return run(exec, std::move(op))[0];
}

}  // namespace pagoda::gpu
