#include "backend/mlx/mlx_op.h"
#include "backend/mlx/template_argument.h"
#include "ops/kv_write/cache_mlx.h"
#include "ops/metal_sources.h"
#include "ops/rms_norm/float_run_mlx.h"
#include "ops/rope/rope_head_mlx.h"
#include "ops/rope_kv_write/rope_kv_write.h"
#include "ops/rope_kv_write/rope_kv_write_metal.h"

namespace pagoda::mlx {
namespace {

// Places among the op's inputs. The norms come last, where there are any.
enum Input { kJoined, kAngles, kSlots, kKeys, kValues, kQNorm, kKNorm };

MetalLaunch launch_of(const Tensor& joined, bool is_normed, const KvView& view,
                      const RopeKvWriteArgs& args) {
  const auto elements = static_cast<double>(joined.num_elements());
  return {
      .dispatches = {{.function = {&kRopeKvWriteMetal,
                                   "rope_kv_write",
                                   {template_argument(view.keys.dtype()),
                                    template_argument(view.head_dim())}},
                      .buffers = {input(kJoined), input(kAngles), input(kSlots),
                                  input(is_normed ? kQNorm : kAngles),  // any, never read
                                  input(is_normed ? kKNorm : kAngles), output(0), output(1),
                                  output(2)},
                      .parameters =
                          RopeKvWriteParameters{
                              .num_heads = args.num_heads,
                              .num_kv_heads = static_cast<int>(view.num_kv_heads()),
                              .num_slots = static_cast<int>(num_slots(view)),
                              .is_halves = args.rope.style == RopeStyle::kHalves,
                              .is_normed = is_normed,
                              .is_aligned = view.head_dim() % 4 == 0 && rows_are_aligned(joined),
                              .eps = args.norm.eps,
                          },
                      .num_groups =
                          head_groups(joined.extent(0), args.num_heads + 2 * view.num_kv_heads()),
                      .num_threads = 32 * kHeadsPerGroup}},
      .flops = 7 * elements,
      .bytes = 8 * elements};
}

HostBody host_body(bool is_normed, const RopeKvWriteArgs& args) {
  return [=](Exec& host, std::span<const Tensor> in) {
    const KvView cache = {.keys = in[kKeys], .values = in[kValues]};
    const Tensor q_norm = is_normed ? in[kQNorm] : Tensor(),
                 k_norm = is_normed ? in[kKNorm] : Tensor();
    const RopeKvWriteResult result =
        cpu::rope_kv_write(host, in[kJoined], q_norm, k_norm, in[kAngles], cache,
                           batch_of_slots(in[kSlots], cache), args);
    return std::vector<Tensor>{result.q, cache.keys, cache.values};
  };
}

}  // namespace

RopeKvWriteResult rope_kv_write(Exec& exec, const Tensor& joined, const Tensor& q_norm,
                                const Tensor& k_norm, const Tensor& angles, const KvView& view,
                                const StepBatch& batch, const RopeKvWriteArgs& args) {
  const bool is_normed = q_norm.defined();
  const Shape q_shape = {joined.extent(0), args.num_heads, view.head_dim()};
  MlxOp op{.name = "rope_kv_write",
           .inputs = {joined, angles, batch.slot_mapping, view.keys, view.values},
           .outputs = {{joined.dtype(), q_shape},
                       {view.keys.dtype(), view.keys.shape(), /*memory_of=*/kKeys},
                       {view.values.dtype(), view.values.shape(), /*memory_of=*/kValues}}};
  if (is_normed) op.inputs.insert(op.inputs.end(), {q_norm, k_norm});
  if (uses_metal(exec)) {
    op.launch = launch_of(joined, is_normed, view, args);
  } else {
    op.host = host_body(is_normed, args);
  }
  std::vector<Tensor> results = run(exec, std::move(op));
  return {.q = std::move(results[0]),
          .view = {.keys = std::move(results[1]), .values = std::move(results[2])}};
}

}  // namespace pagoda::mlx
