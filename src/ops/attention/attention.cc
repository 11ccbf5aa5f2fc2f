#include "ops/attention/attention.h"

#include <fmt/format.h>

namespace pagoda {

Tensor attention(Exec& exec, const Tensor& q, const KvView& view, const StepBatch& batch,
                 const AttentionArgs& args) {
  PAGODA_CHECK(q.shape().rank() == 3 && q.extent(0) == batch.num_tokens &&
                   q.extent(2) == view.head_dim() && q.stride(2) == 1,
               fmt::format("[attention] q: expected {} x heads x {}, got {}", batch.num_tokens,
                           view.head_dim(), to_string(q.shape())));
  PAGODA_CHECK(q.extent(1) % view.num_kv_heads() == 0,
               fmt::format("[attention] q: expected a multiple of {} heads, got {}",
                           view.num_kv_heads(), q.extent(1)));
  PAGODA_CHECK(view.values.shape() == view.keys.shape() &&
                   view.values.dtype() == view.keys.dtype() && view.keys.is_contiguous() &&
                   view.values.is_contiguous(),
               "[attention] view: keys and values differ, or are not contiguous");
  PAGODA_CHECK(args.window >= 0 && args.soft_cap >= 0,
               fmt::format("[attention] expected a window and a soft cap of 0 or more, got {}, {}",
                           args.window, args.soft_cap));
  PAGODA_CHECK(!args.sinks.defined() || (args.sinks.dtype() == DType::kFloat32 &&
                                         args.sinks.shape() == Shape{q.extent(1)}),
               fmt::format("[attention] sinks: expected {} float32, got {} {}", q.extent(1),
                           to_string(args.sinks.shape()), dtype_name(args.sinks.dtype())));
  static constexpr Bodies<decltype(reference::attention)> kBodies{
      reference::attention, cpu::attention, mlx::attention, cuda::attention};
  return kBodies.of(exec)(exec, q, view, batch, args);
}

}  // namespace pagoda
