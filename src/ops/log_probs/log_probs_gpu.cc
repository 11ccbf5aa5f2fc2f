#include "ops/log_probs/log_probs.h"

#include "backend/gpu/gpu_op.h"
#include "backend/gpu/template_argument.h"
#include "ops/log_probs/log_probs_metal.h"
#include "ops/metal_sources.h"
#include "ops/sample/row_dispatch.h"

namespace pagoda::gpu {
namespace {

// Returns the launch for these inputs: logits, token ids, and rows if there are any.
GpuLaunch launch_of(const Tensor& logits, std::int64_t num_rows, const LogProbsArgs& args) {
  const bool has_rows = args.rows != nullptr;
  const bool has_top = args.num_top > 0;
  GpuDispatch dispatch =
      row_dispatch({&kLogProbsMetal, "log_probs", {template_argument(logits.dtype())}}, num_rows,
                   RowMemory::kScratchAndHistogram);
  // A buffer that is not used is replaced by another one.
  dispatch.buffers = {input(0),
                      input(has_rows ? 2 : 1),
                      input(1),
                      output(0),
                      output(1),
                      output(has_top ? 2 : 1),
                      output(has_top ? 3 : 0)};
  dispatch.parameters = LogProbsParameters{.vocab = vocab_of(logits),
                                           .is_aligned = has_aligned_rows(logits),
                                           .has_rows = has_rows ? 1 : 0,
                                           .num_top = static_cast<unsigned>(args.num_top)};
  const double row_bytes =
      static_cast<double>(logits.extent(1)) * static_cast<double>(dtype_size(logits.dtype()));
  return {.dispatches = {dispatch},
          .bytes = kRowPasses * static_cast<double>(num_rows) * row_bytes};
}

std::vector<Tensor> tensors_of(const LogProbs& result) {
  std::vector<Tensor> tensors = {result.chosen, result.rank};
  if (result.top_ids.defined())
    tensors.insert(tensors.end(), {result.top_ids, result.top_logprobs});
  return tensors;
}

}  // namespace

LogProbs log_probs(Exec& exec, const Tensor& logits, const Tensor& token_ids,
                   const LogProbsArgs& args) {
  const std::int64_t num_rows = token_ids.extent(0);
  const bool has_rows = args.rows != nullptr;
  const int num_top = args.num_top;
  GpuOp op{.name = "log_probs",
           .inputs = {logits, token_ids},
           .outputs = {{DType::kFloat32, {num_rows}}, {DType::kInt32, {num_rows}}},
           .launch = {},
           .host = {}};
  if (has_rows) op.inputs.push_back(*args.rows);
  if (num_top > 0) {
    const Shape shape = {num_rows, num_top};
    op.outputs.insert(op.outputs.end(), {{DType::kInt32, shape}, {DType::kFloat32, shape}});
  }
  if (uses_kernels(exec)) {
    op.launch = launch_of(logits, num_rows, args);
  } else {
    op.host = [has_rows, num_top](Exec& host, std::span<const Tensor> in) {
      return tensors_of(cpu::log_probs(host, in[0], in[1],
                                       {.rows = has_rows ? &in[2] : nullptr, .num_top = num_top}));
    };
  }
  const std::vector<Tensor> out = run(exec, std::move(op));
  LogProbs result{.chosen = out[0], .rank = out[1], .top_ids = {}, .top_logprobs = {}};
  if (num_top > 0) {
    result.top_ids = out[2];
    result.top_logprobs = out[3];
  }
  return result;
}

}  // namespace pagoda::gpu
