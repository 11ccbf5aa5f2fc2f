#include "backend/gpu/gpu_op.h"
#include "backend/gpu/template_argument.h"
#include "ops/kv_write/cache_gpu.h"
#include "ops/metal_sources.h"
#include "ops/rms_norm/float_run_gpu.h"
#include "ops/rope/rope_head_gpu.h"
#include "ops/rope_kv_write/rope_kv_write.h"
#include "ops/rope_kv_write/rope_kv_write_metal.h"

namespace pagoda::gpu {
namespace {

// Indices of the op's inputs. Query angles, norms or an offset that are undefined are replaced by
// angles. The cache's arrays come last.
enum RopeKvWriteInput {
  kJoined,
  kAngles,
  kSlots,
  kQNorm,
  kKNorm,
  kVNorm,
  kQueryAngles,
  kKeyOffset,
  kKvCache
};

GpuDispatch dispatch_of(const Tensor& joined, int num_pairs, bool is_normed, const KvView& view,
                        const RopeKvWriteArgs& args) {
  const CacheArrays cache(view, 1);
  PAGODA_CHECK(cache.has_codes() || !args.key_offset.defined(),
               "[rope_kv_write] on Metal only codes have an offset");
  GpuDispatch dispatch{
      .function = {&kRopeKvWriteMetal,
                   cache.has_codes() ? "rope_kv_write_codes" : "rope_kv_write",
                   {template_argument(view.keys.elements.dtype()),
                    template_argument(view.values.elements.dtype()),
                    template_argument(view.head_dim())}},
      .buffers = {input(kJoined), input(kAngles), input(kSlots), input(kQNorm), input(kKNorm),
                  input(kVNorm), input(kQueryAngles), output(0), output(cache.keys()),
                  output(cache.values())},
      .parameters =
          RopeKvWriteParameters{
              .num_heads = args.num_heads,
              .num_kv_heads = static_cast<int>(view.num_kv_heads()),
              .block_size = static_cast<int>(view.block_size()),
              .num_slots = static_cast<int>(view.num_slots()),
              .row_heads = static_cast<int>(joined.extent(1) / view.head_dim()),
              .first_value = args.num_heads +
                             (args.keys_are_values ? 0 : static_cast<int>(view.num_kv_heads())),
              .num_pairs = num_pairs,
              .is_halves = args.rope.style == RopeStyle::kHalves,
              .is_normed = is_normed,
              .norms_values = args.v_norm.defined(),
              .is_aligned = view.head_dim() % 4 == 0 && rows_are_aligned(joined),
              .has_offset = args.key_offset.defined(),
              .eps = args.norm.eps,
          },
      .num_groups = head_groups(joined.extent(0), args.num_heads + 2 * view.num_kv_heads()),
      .num_threads = 32 * kHeadsPerGroup};
  if (cache.has_codes()) {
    dispatch.buffers.push_back(output(cache.key_scales()));
    dispatch.buffers.push_back(output(cache.value_scales()));
    dispatch.buffers.push_back(input(kKeyOffset));
    dispatch.threadgroup_bytes = 4 * kHeadsPerGroup * static_cast<int>(view.head_dim());
  }
  return dispatch;
}

HostBody host_body(const KvFormats& formats, bool is_normed, const RopeKvWriteArgs& args) {
  return [=](Exec& host, std::span<const Tensor> in) {
    const std::span<const Tensor> arrays = in.subspan(kKvCache);
    const KvView cache = KvView::of(formats, arrays);
    const Tensor q_norm = is_normed ? in[kQNorm] : Tensor(),
                 k_norm = is_normed ? in[kKNorm] : Tensor();
    RopeKvWriteArgs host_args = args;
    if (args.query_angles.defined()) host_args.query_angles = in[kQueryAngles];
    if (args.v_norm.defined()) host_args.v_norm = in[kVNorm];
    if (args.key_offset.defined()) host_args.key_offset = in[kKeyOffset];
    const RopeKvWriteResult result =
        cpu::rope_kv_write(host, in[kJoined], q_norm, k_norm, in[kAngles], cache,
                           batch_of_slots(in[kSlots], cache), host_args);
    std::vector<Tensor> results = {result.q};
    results.insert(results.end(), arrays.begin(), arrays.end());
    return results;
  };
}

}  // namespace

RopeKvWriteResult rope_kv_write(Exec& exec, const Tensor& joined, const Tensor& q_norm,
                                const Tensor& k_norm, const Tensor& angles, const KvView& view,
                                const StepBatch& batch, const RopeKvWriteArgs& args) {
  const bool is_normed = q_norm.defined();
  const Shape q_shape = {joined.extent(0), args.num_heads, view.head_dim()};
  GpuOp op{.name = "rope_kv_write",
           .inputs = {joined, angles, batch.slot_mapping, is_normed ? q_norm : angles,
                      is_normed ? k_norm : angles, args.v_norm.defined() ? args.v_norm : angles,
                      args.query_angles.defined() ? args.query_angles : angles,
                      args.key_offset.defined() ? args.key_offset : angles},
           .outputs = {{joined.dtype(), q_shape}}};
  add_cache(view, op);
  if (uses_kernels(exec)) {
    const auto elements = static_cast<double>(joined.num_elements());
    op.launch = {.dispatches = {dispatch_of(joined, static_cast<int>(angles.extent(2)), is_normed,
                                            view, args)},
                 .flops = 7 * elements,
                 .bytes = 8 * elements};
  } else {
    op.host = host_body(view.formats(), is_normed, args);
  }
  const std::vector<Tensor> results = run(exec, std::move(op));
  return {.q = results[0], .view = KvView::of(view.formats(), std::span(results).subspan(1))};
}

}  // namespace pagoda::gpu
