#include "ops/attention/cpu/attention_workers.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/attention/cpu/bf16_workers_cpu.cc"
#include "hwy/foreach_target.h"  // compiles this file once a target

#include "hwy/highway.h"
#include "ops/attention/cpu/attention_worker-inl.h"

PAGODA_ATTENTION_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {

// Calls `use` with the type of the AttentionWorker for keys and values of bfloat16.
template <typename Use>
auto with_bf16_worker(const AttentionCall& call, Use&& use) {
#if PAGODA_HAS_PAIR_DOTS
  if (call.has_tiles) return use(std::type_identity<AttentionWorker<TileDots>>());
  return use(std::type_identity<AttentionWorker<Bf16Dots>>());
#else
  return use(std::type_identity<AttentionWorker<FloatDots<bf16>>>());
#endif
}

std::int64_t scratch_floats_bf16(const AttentionCall& call, const AttentionPlan::Counts& counts) {
  return with_bf16_worker(
      call, [&](auto type) { return decltype(type)::type::scratch_floats(call, counts); });
}

void attend_bf16(const AttentionCall& call, const AttentionPlan::Counts& counts,
                 AttentionQueue& queue, int thread, AttentionScratch scratch) {
  with_bf16_worker(call, [&](auto type) {
    typename decltype(type)::type worker(call, counts, scratch);
    worker.run(queue, thread);
  });
}

void merge_bf16(const AttentionCall& call, const AttentionPlan::Counts& counts,
                std::span<const AttentionItem> splits, AttentionScratch scratch) {
  with_bf16_worker(call, [&](auto type) {
    typename decltype(type)::type worker(call, counts, scratch);
    for (const AttentionItem& split : splits) worker.merge(split);
  });
}

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pagoda::cpu {

HWY_EXPORT(scratch_floats_bf16);
HWY_EXPORT(attend_bf16);
HWY_EXPORT(merge_bf16);

AttentionWorkers bf16_workers() {
  return {HWY_DYNAMIC_DISPATCH(scratch_floats_bf16), HWY_DYNAMIC_DISPATCH(attend_bf16),
          HWY_DYNAMIC_DISPATCH(merge_bf16)};
}

}  // namespace pagoda::cpu
#endif  // HWY_ONCE
