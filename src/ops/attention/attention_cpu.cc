#include "ops/attention/attention.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "backend/cpu/cpu_exec.h"
#include "ops/attention/cpu/attention_workers.h"

namespace pagoda::cpu {
namespace {

// The fewest merges worth a fork: the caller finishes fewer before the workers wake.
constexpr std::int64_t kMergeGrain = 4;

CallEntries make_entries(const KvEntries& entries) {
  const std::int64_t kv_heads = entries.elements.extent(2);
  return {.elements = entries.elements.first_byte(),
          .slot_bytes = kv_heads * entries.entry_bytes(),
          .entry_bytes = entries.entry_bytes(),
          .scales = entries.scales.defined() ? entries.scales.data<bf16>() : nullptr,
          .format = entries.format};
}

AttentionCall make_call(AttentionPath path, const Tensor& q, const KvView& view,
                        const StepBatch& batch, const AttentionArgs& args, const Tensor& out) {
  return {.path = path,
          .q = q.data<float>(),
          .token_stride = q.stride(0),
          .head_stride = q.stride(1),
          .out = out.data<float>(),
          .sinks = args.sinks.defined() ? args.sinks.data<float>() : nullptr,
          .keys = make_entries(view.keys),
          .values = make_entries(view.values),
          .block_tables = batch.block_tables.data<std::int32_t>(),
          .max_blocks = batch.block_tables.extent(1),
          .block_size = view.block_size(),
          .kv_heads = static_cast<int>(view.num_kv_heads()),
          .group = static_cast<int>(q.extent(1) / view.num_kv_heads()),
          .head_dim = view.head_dim(),
          .scale = args.scale,
          .window = args.window,
          .soft_cap = args.soft_cap,
          .prefetch = prefetch_level()};
}

AttentionWorkers workers_of(const AttentionCall& call) {
  if (call.path == AttentionPath::kCodes) return code_workers();
  const bool is_bf16 =
      call.path == AttentionPath::kFloats && call.keys.format == KvFormat::kBFloat16;
  return is_bf16 ? bf16_workers() : float_workers();
}

// Allocates `count` items in the step's arena.
std::span<AttentionItem> allocate_items(Exec& exec, std::int64_t count, Tensor& memory) {
  static_assert(sizeof(AttentionItem) % sizeof(std::int32_t) == 0 &&
                std::is_trivially_copyable_v<AttentionItem>);
  constexpr std::int64_t kWords = sizeof(AttentionItem) / sizeof(std::int32_t);
  memory = exec.allocate(DType::kInt32, {count * kWords});
  auto* const items = reinterpret_cast<AttentionItem*>(memory.data<std::int32_t>());
  return {items, static_cast<std::size_t>(count)};
}

}  // namespace

Tensor attention_on(AttentionPath path, bool has_avx_vnni, Exec& exec, const Tensor& q,
                    const KvView& view, const StepBatch& batch, const AttentionArgs& args) {
  Tensor out = exec.allocate(DType::kFloat32, {q.extent(0), q.extent(1) * q.extent(2)});
  if (path == AttentionPath::kDecoded) count_decoded_attention(exec);
  ThreadPool& pool = pool_of(exec);
  const int num_threads = pool.num_threads();
  AttentionCall call = make_call(path, q, view, batch, args, out);
  call.has_avx_vnni = has_avx_vnni;
  call.has_tiles = isa_of(exec) == CpuIsa::kAmx && path == AttentionPath::kFloats &&
                   call.keys.format == KvFormat::kBFloat16;
  if (batch.first_slots.defined()) call.first_slots = batch.first_slots.data<std::int32_t>();
  const AttentionPlan plan(call, batch, num_threads);
  const AttentionPlan::Counts& counts = plan.counts();
  Tensor item_memory, split_memory;
  const auto items = allocate_items(exec, counts.items, item_memory);
  const auto splits = allocate_items(exec, counts.splits, split_memory);
  plan.fill(items, splits);
  const Tensor partials = exec.allocate(DType::kFloat32, {counts.partial_floats});
  call.partials = partials.data<float>();
  const AttentionWorkers workers = workers_of(call);
  const std::int64_t floats = workers.scratch_floats(call, counts);
  const Tensor scratch = exec.allocate(DType::kFloat32, {num_threads, floats});
  const auto scratch_of = [&](int thread) {
    return AttentionScratch(scratch.data<float>() + thread * floats, floats);
  };

  AttentionQueue queue(items, num_threads);
  pool.parallel_for(std::min<std::int64_t>(num_threads, counts.items), 1,
                    [&](std::int64_t, std::int64_t, int thread) {
                      workers.attend(call, counts, queue, thread, scratch_of(thread));
                    });
  pool.parallel_for(
      counts.splits, kMergeGrain, [&](std::int64_t begin, std::int64_t end, int thread) {
        workers.merge(call, counts, splits.subspan(begin, end - begin), scratch_of(thread));
      });
  return out;
}

Tensor attention(Exec& exec, const Tensor& q, const KvView& view, const StepBatch& batch,
                 const AttentionArgs& args) {
  const KvFormats formats = view.formats();
  const AttentionPath path = attention_path(formats, view.head_dim());
  return attention_on(path, has_avx_vnni(), exec, q, view, batch, args);
}

}  // namespace pagoda::cpu
