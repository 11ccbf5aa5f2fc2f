#include "ops/attention/attention.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "backend/cpu/cpu_exec.h"
#include "ops/attention/cpu/attention_items.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/attention/attention_cpu.cc"
#include "hwy/foreach_target.h"  // compiles this file once a target

#include "hwy/highway.h"
#include "ops/attention/cpu/attention_worker-inl.h"

PAGODA_ATTENTION_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {

// Calls `use` with an AttentionWorker for keys and values of one float format.
template <typename Use>
void with_float_worker(const AttentionCall& call, const AttentionPlan::Counts& counts,
                       float* scratch, Use&& use) {
  switch (call.keys.format) {
    case KvFormat::kFloat32:
      return use(AttentionWorker<FloatDots<float>>(call, counts, scratch));
    case KvFormat::kBFloat16:
#if PAGODA_HAS_PAIR_DOTS
      if (call.has_tiles) return use(AttentionWorker<TileDots>(call, counts, scratch));
      return use(AttentionWorker<Bf16Dots>(call, counts, scratch));
#else
      return use(AttentionWorker<FloatDots<bf16>>(call, counts, scratch));
#endif
    case KvFormat::kFloat16:
      return use(AttentionWorker<FloatDots<f16>>(call, counts, scratch));
    default:
      PAGODA_CHECK(false, "[attention] codes on the path of floats");
  }
}

// Calls `use` with an AttentionWorker for keys and values that are codes.
template <bool kHasVnni, typename Use>
void with_code_worker(const AttentionCall& call, const AttentionPlan::Counts& counts,
                      float* scratch, Use&& use) {
  constexpr KvFormat kInt8 = KvFormat::kInt8, kInt4 = KvFormat::kInt4;
  if (call.keys.format == kInt4)
    return use(AttentionWorker<CodeDots<kInt4, kInt4, kHasVnni>>(call, counts, scratch));
  if (call.values.format == kInt4)
    return use(AttentionWorker<CodeDots<kInt8, kInt4, kHasVnni>>(call, counts, scratch));
  return use(AttentionWorker<CodeDots<kInt8, kInt8, kHasVnni>>(call, counts, scratch));
}

// Calls `use` with an AttentionWorker for the call's path and formats.
template <typename Use>
void with_worker(const AttentionCall& call, const AttentionPlan::Counts& counts, float* scratch,
                 Use&& use) {
  if (call.path == AttentionPath::kFloats) return with_float_worker(call, counts, scratch, use);
  if (call.path == AttentionPath::kDecoded)
    return use(AttentionWorker<DecodedDots>(call, counts, scratch));
#if HWY_TARGET == HWY_AVX2
  if (call.has_avx_vnni) return with_code_worker<true>(call, counts, scratch, use);
#endif
  with_code_worker<PAGODA_HAS_PAIR_DOTS != 0>(call, counts, scratch, use);
}

void attend_items(const AttentionCall& call, const AttentionPlan::Counts& counts,
                  AttentionQueue& queue, int thread, float* scratch) {
  with_worker(call, counts, scratch, [&](auto&& worker) { worker.run(queue, thread); });
}

void merge_items(const AttentionCall& call, const AttentionPlan::Counts& counts,
                 std::span<const AttentionItem> splits, float* scratch) {
  with_worker(call, counts, scratch, [&](auto&& worker) {
    for (const AttentionItem& split : splits) worker.merge(split);
  });
}

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pagoda::cpu {

HWY_EXPORT(attend_items);
HWY_EXPORT(merge_items);

namespace {

// Merges worth a fork: below, the caller is done before the workers wake.
constexpr std::int64_t kMergeGrain = 4;

CallEntries make_entries(const KvEntries& entries) {
  const std::int64_t kv_heads = entries.elements.extent(2);
  return {.elements = entries.elements.first_byte(),
          .slot_bytes = kv_heads * entries.entry_bytes(),
          .entry_bytes = entries.entry_bytes(),
          .scales = entries.scales.defined() ? entries.scales.data<bf16>() : nullptr,
          .format = entries.format()};
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

// At least what an AttentionWorker takes, for the widest vectors and rows of any target.
std::int64_t worker_floats(const AttentionCall& call, const AttentionPlan::Counts& counts) {
  constexpr std::int64_t kMostArrays = 20, kMostLanes = 16, kMostRows = 12;
  const std::int64_t dim = call.padded_dim();
  const bool is_decoded = call.path == AttentionPath::kDecoded;
  const bool has_codes = call.path == AttentionPath::kCodes;
  // A key in a tile takes so many, and a query.
  const std::int64_t words = is_decoded
                                 ? dim + kMostLanes
                                 : (call.keys.entry_bytes / 4 + kMostLanes) * (has_codes ? 4 : 1);
  const std::int64_t query = std::max(dim, words) + 2 * kMostLanes;
  const std::int64_t decoded = is_decoded ? (kTilePositions + kMostRows) * dim : 0;
  const std::int64_t coded = has_codes ? (2 + kMostRows) * query + 5 * counts.states +
                                             5 * kMostLanes + call.kv_heads * 4 * kRangePositions
                                       : 0;
  const std::int64_t beyond =
      call.has_tiles ? 16 * (query + kRangePositions + dim) + kRangePositions / 2 * dim : 0;
  const std::int64_t floats = words * kTilePositions + counts.states * (query + kRangePositions) +
                              2 * counts.found_floats + 2 * counts.rows + dim * kTilePositions +
                              decoded + coded + beyond + 36 * kRangePositions + 16 * kMostArrays;
  return (floats + kMostLanes - 1) / kMostLanes * kMostLanes;  // so that each thread's are aligned
}

// Memory of a step for `count` items.
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
  const std::int64_t floats = worker_floats(call, counts);
  const Tensor scratch = exec.allocate(DType::kFloat32, {num_threads, floats});
  const auto scratch_of = [&](int thread) { return scratch.data<float>() + thread * floats; };

  AttentionQueue queue(items, num_threads);
  const auto attend_items = HWY_DYNAMIC_DISPATCH(attend_items);
  pool.parallel_for(std::min<std::int64_t>(num_threads, counts.items), 1,
                    [&](std::int64_t, std::int64_t, int thread) {
                      attend_items(call, counts, queue, thread, scratch_of(thread));
                    });
  const auto merge_items = HWY_DYNAMIC_DISPATCH(merge_items);
  pool.parallel_for(
      counts.splits, kMergeGrain, [&](std::int64_t begin, std::int64_t end, int thread) {
        merge_items(call, counts, splits.subspan(begin, end - begin), scratch_of(thread));
      });
  return out;
}

Tensor attention(Exec& exec, const Tensor& q, const KvView& view, const StepBatch& batch,
                 const AttentionArgs& args) {
  const KvFormats formats = {view.keys.format(), view.values.format()};
  const AttentionPath path = attention_path(formats, view.head_dim());
  return attention_on(path, has_avx_vnni(), exec, q, view, batch, args);
}

}  // namespace pagoda::cpu
#endif  // HWY_ONCE
