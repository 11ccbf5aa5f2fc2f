#include "ops/kv_write/kv_write.h"

#include <fmt/format.h>

#include "ops/check_kv_view.h"

namespace pagoda {

KvView kv_write(Exec& exec, const KvView& view, const Tensor& k, const Tensor& v,
                const StepBatch& batch) {
  const Shape entry = {batch.num_tokens, view.num_kv_heads(), view.head_dim()};
  PAGODA_CHECK(
      k.shape() == entry && k.stride(2) == 1,
      fmt::format("[kv_write] k: expected {}, got {}", to_string(entry), to_string(k.shape())));
  PAGODA_CHECK(v.shape() == entry && v.stride(2) == 1 && v.dtype() == k.dtype(),
               fmt::format("[kv_write] v: expected {} {}, got {} {}", to_string(entry),
                           dtype_name(k.dtype()), to_string(v.shape()), dtype_name(v.dtype())));
  check_kv_view("kv_write", view);
  const OpTimer timer(
      exec, [&] { return OpCall{.op = "kv_write", .read_bytes = bytes_of(k) + bytes_of(v)}; });
  static constexpr Bodies<decltype(reference::kv_write)> kBodies{reference::kv_write, cpu::kv_write,
                                                                 gpu::kv_write};
  return kBodies.of(exec)(exec, view, k, v, batch);
}

}  // namespace pagoda
