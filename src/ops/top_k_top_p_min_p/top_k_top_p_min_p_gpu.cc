#include "ops/top_k_top_p_min_p/top_k_top_p_min_p.h"

#include "backend/gpu/gpu_op.h"
#include "ops/metal_sources.h"
#include "ops/sample/row_dispatch.h"
#include "ops/top_k_top_p_min_p/top_k_top_p_min_p_metal.h"

namespace pagoda::gpu {

KeptTokens top_k_top_p_min_p(Exec& exec, const Tensor& logits, const Tensor& inverse_temperature,
                             const RowFilters& filters) {
  const Shape rows = {logits.extent(0)};
  GpuOp op{
      .name = "top_k_top_p_min_p",
      .inputs = {logits, inverse_temperature, filters.top_k, filters.top_p, filters.min_p_margin},
      .outputs = {{DType::kFloat32, rows}, {DType::kInt32, rows}},
      .launch = {},
      .host = {}};
  if (uses_kernels(exec)) {
    GpuDispatch dispatch = row_dispatch({&kTopKTopPMinPMetal, "top_k_top_p_min_p"}, rows[0],
                                        RowMemory::kScratchAndHistogram);
    dispatch.buffers = {input(0), input(1), input(2), input(3), input(4), output(0), output(1)};
    dispatch.parameters =
        TopKTopPMinPParameters{.vocab = vocab_of(logits), .is_aligned = has_aligned_rows(logits)};
    op.launch = {.dispatches = {dispatch}, .bytes = kRowPasses * bytes_of(logits)};
  } else {
    op.host = [](Exec& host, std::span<const Tensor> in) {
      const KeptTokens kept = cpu::top_k_top_p_min_p(
          host, in[0], in[1], {.top_k = in[2], .top_p = in[3], .min_p_margin = in[4]});
      return std::vector<Tensor>{kept.least, kept.num_ties};
    };
  }
  const std::vector<Tensor> kept = run(exec, std::move(op));
  return {.least = kept[0], .num_ties = kept[1]};
}

}  // namespace pagoda::gpu
