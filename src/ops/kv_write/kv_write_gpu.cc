#include "backend/gpu/gpu_op.h"
#include "backend/gpu/template_argument.h"
#include "ops/kv_write/cache_gpu.h"
#include "ops/kv_write/kv_write.h"
#include "ops/kv_write/kv_write_metal.h"
#include "ops/metal_sources.h"
#include "ops/rms_norm/float_run_gpu.h"

namespace pagoda::gpu {
namespace {

// Returns the dispatch of a write. If the cache has numbers only, a thread writes a run of them;
// else a SIMD group writes an entry.
GpuDispatch dispatch_of(const KvView& view, const Tensor& k, const Tensor& v) {
  const CacheArrays cache(view, 0);
  const std::int64_t width = view.num_kv_heads() * view.head_dim();
  const bool is_wide = view.head_dim() % 4 == 0 && rows_are_aligned(k) && rows_are_aligned(v);
  GpuDispatch dispatch{
      .function = {&kKvWriteMetal,
                   cache.has_codes() ? "kv_write_codes" : "kv_write",
                   {template_argument(view.keys.elements.dtype()),
                    template_argument(view.values.elements.dtype())}},
      .buffers = {input(0), input(1), input(2), output(cache.keys()), output(cache.values())},
      .parameters =
          KvWriteParameters{
              .kv_heads = static_cast<int>(view.num_kv_heads()),
              .head_dim = static_cast<int>(view.head_dim()),
              .block_size = static_cast<int>(view.block_size()),
              .num_slots = static_cast<int>(view.num_slots()),
              .k_token_stride = static_cast<int>(k.stride(0)),
              .k_head_stride = static_cast<int>(k.stride(1)),
              .v_token_stride = static_cast<int>(v.stride(0)),
              .v_head_stride = static_cast<int>(v.stride(1)),
          },
      .num_groups = {num_groups_of(width, is_wide ? 1024 : 256), static_cast<int>(k.extent(0)), 1},
      .num_threads = 256};
  if (cache.has_codes()) {
    dispatch.function.arguments.push_back(template_argument(view.head_dim()));
    dispatch.buffers.push_back(output(cache.key_scales()));
    dispatch.buffers.push_back(output(cache.value_scales()));
    dispatch.num_groups[0] = num_groups_of(2 * view.num_kv_heads(), 8);
  } else {
    dispatch.function.arguments.push_back(is_wide ? "4" : "1");
  }
  return dispatch;
}

}  // namespace

KvView kv_write(Exec& exec, const KvView& view, const Tensor& k, const Tensor& v,
                const StepBatch& batch) {
  GpuOp op{.name = "kv_write", .inputs = {k, v, batch.slot_mapping}, .outputs = {}};
  add_cache(view, op);
  if (uses_kernels(exec)) {
    const double entry_bytes = 8 * static_cast<double>(k.num_elements());
    const auto token_bytes = static_cast<double>(view.bytes_per_token());
    op.launch = {.dispatches = {dispatch_of(view, k, v)},
                 .bytes = entry_bytes + token_bytes * static_cast<double>(k.extent(0))};
  } else {
    op.host = [formats = view.formats()](Exec& host, std::span<const Tensor> in) {
      const std::span<const Tensor> arrays = in.subspan(3);
      const KvView cache = KvView::of(formats, arrays);
      cpu::kv_write(host, cache, in[0], in[1], batch_of_slots(in[2], cache));
      return std::vector<Tensor>(arrays.begin(), arrays.end());
    };
  }
  return KvView::of(view.formats(), run(exec, std::move(op)));
}

}  // namespace pagoda::gpu
