#include "ops/argmax/argmax.h"

#include "backend/gpu/gpu_op.h"
#include "ops/argmax/argmax_metal.h"
#include "ops/metal_sources.h"
#include "ops/sample/row_dispatch.h"

namespace pagoda::gpu {

Tensor argmax(Exec& exec, const Tensor& logits) {
  GpuOp op{.name = "argmax",
           .inputs = {logits},
           .outputs = {{DType::kInt32, {logits.extent(0)}}},
           .launch = {},
           .host = {}};
  if (uses_kernels(exec)) {
    GpuDispatch dispatch =
        row_dispatch({&kArgmaxMetal, "argmax"}, logits.extent(0), RowMemory::kScratch);
    dispatch.buffers = {input(0), output(0)};
    dispatch.parameters =
        ArgmaxParameters{.vocab = vocab_of(logits), .is_aligned = has_aligned_rows(logits)};
    op.launch = {.dispatches = {dispatch}, .bytes = bytes_of(logits)};
  } else {
    op.host = [](Exec& host, std::span<const Tensor> in) {
      return std::vector<Tensor>{cpu::argmax(host, in[0])};
    };
  }
  return run(exec, std::move(op))[0];
}

}  // namespace pagoda::gpu
