#include "ops/sample/sample.h"

#include "backend/gpu/gpu_op.h"
#include "ops/metal_sources.h"
#include "ops/sample/row_dispatch.h"
#include "ops/sample/sample_metal.h"

namespace pagoda::gpu {
namespace {

GpuLaunch launch_of(const Tensor& logits, bool is_filtered) {
  const GpuFunction function = {&kSampleMetal, is_filtered ? "sample_filtered" : "sample"};
  GpuDispatch dispatch =
      row_dispatch(function, logits.extent(0),
                   is_filtered ? RowMemory::kScratchAndHistogram : RowMemory::kScratch);
  dispatch.buffers = {input(0), input(1), input(2)};
  if (is_filtered) dispatch.buffers.insert(dispatch.buffers.end(), {input(3), input(4), input(5)});
  dispatch.buffers.push_back(output(0));
  dispatch.parameters =
      SampleParameters{.vocab = vocab_of(logits), .is_aligned = has_aligned_rows(logits)};
  return {.dispatches = {dispatch}, .bytes = kRowPasses * bytes_of(logits)};
}

}  // namespace

Tensor sample(Exec& exec, const Tensor& logits, const SampleArgs& args) {
  const bool is_filtered = args.filters != nullptr;
  GpuOp op{.name = "sample",
           .inputs = {logits, args.inverse_temperature, args.uniforms},
           .outputs = {{DType::kInt32, {logits.extent(0)}}},
           .launch = {},
           .host = {}};
  if (is_filtered) {
    op.inputs.insert(op.inputs.end(),
                     {args.filters->top_k, args.filters->top_p, args.filters->min_p_margin});
  }
  if (uses_kernels(exec)) {
    op.launch = launch_of(logits, is_filtered);
  } else {
    op.host = [is_filtered](Exec& host, std::span<const Tensor> in) {
      RowFilters filters;
      if (is_filtered) filters = {.top_k = in[3], .top_p = in[4], .min_p_margin = in[5]};
      return std::vector<Tensor>{cpu::sample(host, in[0],
                                             {.inverse_temperature = in[1],
                                              .uniforms = in[2],
                                              .filters = is_filtered ? &filters : nullptr})};
    };
  }
  return run(exec, std::move(op))[0];
}

}  // namespace pagoda::gpu
