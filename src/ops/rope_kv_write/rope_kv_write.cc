#include "ops/rope_kv_write/rope_kv_write.h"

#include <fmt/format.h>

#include "ops/check_kv_view.h"
#include "ops/check_tensor.h"

namespace pagoda {

RopeKvWriteResult rope_kv_write(Exec& exec, const Tensor& joined, const Tensor& q_norm,
                                const Tensor& k_norm, const Tensor& angles, const KvView& view,
                                const StepBatch& batch, const RopeKvWriteArgs& args) {
  constexpr std::string_view kName = "rope_kv_write";
  check_kv_view(kName, view);
  const std::int64_t head_dim = view.head_dim();
  PAGODA_CHECK(head_dim % 2 == 0, fmt::format("[rope_kv_write] view: expected an even head_dim, "
                                              "got {}",
                                              head_dim));
  const std::int64_t width =
      (args.num_heads + (args.keys_are_values ? 1 : 2) * view.num_kv_heads()) * head_dim;
  check_tensor(kName, "joined", joined, joined.dtype(), {batch.num_tokens, width});
  check_angles(kName, angles, batch.num_tokens, head_dim);
  if (args.query_angles.defined()) {
    check_tensor(kName, "query_angles", args.query_angles, DType::kFloat32, angles.shape());
  }
  PAGODA_CHECK(q_norm.defined() == k_norm.defined(),
               "[rope_kv_write] norms: expected both or none, got one");
  if (q_norm.defined()) {
    check_tensor(kName, "q_norm", q_norm, DType::kFloat32, {head_dim});
    check_tensor(kName, "k_norm", k_norm, DType::kFloat32, {head_dim});
  }
  if (args.v_norm.defined())
    check_tensor(kName, "v_norm", args.v_norm, DType::kFloat32, {head_dim});
  if (args.key_offset.defined()) {
    check_tensor(kName, "key_offset", args.key_offset, DType::kFloat32,
                 {view.num_kv_heads(), head_dim});
  }
  const OpTimer timer(
      exec, [&] { return OpCall{.op = kName, .read_bytes = bytes_of(joined) + bytes_of(angles)}; });
  static constexpr Bodies<decltype(reference::rope_kv_write)> kBodies{
      reference::rope_kv_write, cpu::rope_kv_write, gpu::rope_kv_write};
  return kBodies.of(exec)(exec, joined, q_norm, k_norm, angles, view, batch, args);
}

}  // namespace pagoda
