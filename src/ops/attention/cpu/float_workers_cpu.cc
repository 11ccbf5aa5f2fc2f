#include "ops/attention/cpu/attention_workers.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/attention/cpu/float_workers_cpu.cc"
#include "hwy/foreach_target.h"  // compiles this file once a target

#include "hwy/highway.h"
#include "ops/attention/cpu/attention_worker-inl.h"

PAGODA_ATTENTION_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {

// Calls `use` with an AttentionWorker for what the call's keys and values are, or are decoded to.
template <typename Use>
void with_float_worker(const AttentionCall& call, const AttentionPlan::Counts& counts,
                       float* scratch, Use&& use) {
  if (call.path == AttentionPath::kDecoded)
    return use(AttentionWorker<DecodedDots>(call, counts, scratch));
  if (call.keys.format == KvFormat::kFloat16)
    return use(AttentionWorker<FloatDots<f16>>(call, counts, scratch));
  use(AttentionWorker<FloatDots<float>>(call, counts, scratch));
}

void attend_float(const AttentionCall& call, const AttentionPlan::Counts& counts,
                  AttentionQueue& queue, int thread, float* scratch) {
  with_float_worker(call, counts, scratch, [&](auto&& worker) { worker.run(queue, thread); });
}

void merge_float(const AttentionCall& call, const AttentionPlan::Counts& counts,
                 std::span<const AttentionItem> splits, float* scratch) {
  with_float_worker(call, counts, scratch, [&](auto&& worker) {
    for (const AttentionItem& split : splits) worker.merge(split);
  });
}

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pagoda::cpu {

HWY_EXPORT(attend_float);
HWY_EXPORT(merge_float);

AttentionWorkers float_workers() {
  return {HWY_DYNAMIC_DISPATCH(attend_float), HWY_DYNAMIC_DISPATCH(merge_float)};
}

}  // namespace pagoda::cpu
#endif  // HWY_ONCE
