#include "ops/attention/cpu/attention_workers.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/attention/cpu/float_workers_cpu.cc"
#include "hwy/foreach_target.h"  // compiles this file once a target

#include "hwy/highway.h"
#include "ops/attention/cpu/attention_worker-inl.h"

PAGODA_ATTENTION_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {

// Calls `use` with the type of the AttentionWorker for the call's float format, or for decoding.
template <typename Use>
auto with_float_worker(const AttentionCall& call, Use&& use) {
  if (call.path == AttentionPath::kDecoded)
    return use(std::type_identity<AttentionWorker<DecodedDots>>());
  if (call.keys.format == KvFormat::kFloat16)
    return use(std::type_identity<AttentionWorker<FloatDots<f16>>>());
  return use(std::type_identity<AttentionWorker<FloatDots<float>>>());
}

std::int64_t scratch_floats_float(const AttentionCall& call, const AttentionPlan::Counts& counts) {
  return with_float_worker(
      call, [&](auto type) { return decltype(type)::type::scratch_floats(call, counts); });
}

void attend_float(const AttentionCall& call, const AttentionPlan::Counts& counts,
                  AttentionQueue& queue, int thread, AttentionScratch scratch) {
  with_float_worker(call, [&](auto type) {
    typename decltype(type)::type worker(call, counts, scratch);
    worker.run(queue, thread);
  });
}

void merge_float(const AttentionCall& call, const AttentionPlan::Counts& counts,
                 std::span<const AttentionItem> splits, AttentionScratch scratch) {
  with_float_worker(call, [&](auto type) {
    typename decltype(type)::type worker(call, counts, scratch);
    for (const AttentionItem& split : splits) worker.merge(split);
  });
}

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pagoda::cpu {

HWY_EXPORT(scratch_floats_float);
HWY_EXPORT(attend_float);
HWY_EXPORT(merge_float);

AttentionWorkers float_workers() {
  return {HWY_DYNAMIC_DISPATCH(scratch_floats_float), HWY_DYNAMIC_DISPATCH(attend_float),
          HWY_DYNAMIC_DISPATCH(merge_float)};
}

}  // namespace pagoda::cpu
#endif  // HWY_ONCE
