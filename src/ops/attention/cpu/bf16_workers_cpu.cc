#include "ops/attention/cpu/attention_workers.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/attention/cpu/bf16_workers_cpu.cc"
#include "hwy/foreach_target.h"  // compiles this file once a target

#include "hwy/highway.h"
#include "ops/attention/cpu/attention_worker-inl.h"

PAGODA_ATTENTION_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {

// Calls `use` with an AttentionWorker for keys and values of bfloat16.
template <typename Use>
void with_bf16_worker(const AttentionCall& call, const AttentionPlan::Counts& counts,
                      float* scratch, Use&& use) {
#if PAGODA_HAS_PAIR_DOTS
  if (call.has_tiles) return use(AttentionWorker<TileDots>(call, counts, scratch));
  use(AttentionWorker<Bf16Dots>(call, counts, scratch));
#else
  use(AttentionWorker<FloatDots<bf16> >(call, counts, scratch));
#endif
}

void attend_bf16(const AttentionCall& call, const AttentionPlan::Counts& counts,
                 AttentionQueue& queue, int thread, float* scratch) {
  with_bf16_worker(call, counts, scratch, [&](auto&& worker) { worker.run(queue, thread); });
}

void merge_bf16(const AttentionCall& call, const AttentionPlan::Counts& counts,
                std::span<const AttentionItem> splits, float* scratch) {
  with_bf16_worker(call, counts, scratch, [&](auto&& worker) {
    for (const AttentionItem& split : splits) worker.merge(split);
  });
}

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pagoda::cpu {

HWY_EXPORT(attend_bf16);
HWY_EXPORT(merge_bf16);

AttentionWorkers bf16_workers() {
  return {HWY_DYNAMIC_DISPATCH(attend_bf16), HWY_DYNAMIC_DISPATCH(merge_bf16)};
}

}  // namespace pagoda::cpu
#endif  // HWY_ONCE
