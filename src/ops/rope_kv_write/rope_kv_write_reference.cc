#include "ops/kv_write/kv_write.h"
#include "ops/rms_norm_rope/rms_norm_rope.h"
#include "ops/rope_kv_write/rope_kv_write.h"
#include "ops/rope_kv_write/take_offset.h"

namespace pagoda::reference {

RopeKvWriteResult rope_kv_write(Exec& exec, const Tensor& joined, const Tensor& q_norm,
                                const Tensor& k_norm, const Tensor& angles, const KvView& view,
                                const StepBatch& batch, const RopeKvWriteArgs& args) {
  const std::int64_t num_q = args.num_heads, num_k = view.num_kv_heads();
  const auto rotated = [&](const Tensor& x, const Tensor& norm, const Tensor& own_angles) {
    if (!norm.defined()) return reference::rope(exec, x, own_angles, args.rope);
    return reference::rms_norm_rope(exec, x, norm, own_angles,
                                    {.norm = args.norm, .rope = args.rope});
  };
  const Tensor heads = joined.split_last(joined.extent(1) / view.head_dim(), view.head_dim());
  Tensor q = rotated(heads.slice(1, 0, num_q), q_norm,
                     args.query_angles.defined() ? args.query_angles : angles);
  const Tensor k = rotated(heads.slice(1, num_q, num_q + num_k), k_norm, angles);
  take_offset(k, args.key_offset, 0, k.extent(0));
  const std::int64_t first_v = args.keys_are_values ? num_q : num_q + num_k;
  Tensor v = heads.slice(1, first_v, first_v + num_k);
  if (args.v_norm.defined()) v = reference::rms_norm(exec, v, args.v_norm, args.norm);
  return {.q = std::move(q), .view = reference::kv_write(exec, view, k, v, batch)};
}

}  // namespace pagoda::reference
