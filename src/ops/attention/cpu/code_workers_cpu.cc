#include "ops/attention/cpu/attention_workers.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/attention/cpu/code_workers_cpu.cc"
#include "hwy/foreach_target.h"  // compiles this file once a target

#include "hwy/highway.h"
#include "ops/attention/cpu/attention_worker-inl.h"

PAGODA_ATTENTION_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {

// Calls `use` with an AttentionWorker for keys and values that are codes.
template <bool kHasVnni, typename Use>
void with_vnni_or_none(const AttentionCall& call, const AttentionPlan::Counts& counts,
                       float* scratch, Use&& use) {
  constexpr KvFormat kInt8 = KvFormat::kInt8, kInt4 = KvFormat::kInt4;
  if (call.keys.format == kInt4)
    return use(AttentionWorker<CodeDots<kInt4, kInt4, kHasVnni>>(call, counts, scratch));
  if (call.values.format == kInt4)
    return use(AttentionWorker<CodeDots<kInt8, kInt4, kHasVnni>>(call, counts, scratch));
  use(AttentionWorker<CodeDots<kInt8, kInt8, kHasVnni>>(call, counts, scratch));
}

// Calls `use` with one for the instructions that the target, or with AVX2 the call, has besides.
template <typename Use>
void with_code_worker(const AttentionCall& call, const AttentionPlan::Counts& counts,
                      float* scratch, Use&& use) {
#if HWY_TARGET == HWY_AVX2
  if (call.has_avx_vnni) return with_vnni_or_none<true>(call, counts, scratch, use);
#endif
  with_vnni_or_none<PAGODA_HAS_PAIR_DOTS != 0>(call, counts, scratch, use);
}

void attend_code(const AttentionCall& call, const AttentionPlan::Counts& counts,
                 AttentionQueue& queue, int thread, float* scratch) {
  with_code_worker(call, counts, scratch, [&](auto&& worker) { worker.run(queue, thread); });
}

void merge_code(const AttentionCall& call, const AttentionPlan::Counts& counts,
                std::span<const AttentionItem> splits, float* scratch) {
  with_code_worker(call, counts, scratch, [&](auto&& worker) {
    for (const AttentionItem& split : splits) worker.merge(split);
  });
}

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pagoda::cpu {

HWY_EXPORT(attend_code);
HWY_EXPORT(merge_code);

AttentionWorkers code_workers() {
  return {HWY_DYNAMIC_DISPATCH(attend_code), HWY_DYNAMIC_DISPATCH(merge_code)};
}

}  // namespace pagoda::cpu
#endif  // HWY_ONCE
