#include "ops/attention/cpu/attention_workers.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/attention/cpu/code_workers_cpu.cc"
#include "hwy/foreach_target.h"  // compiles this file once a target

#include "hwy/highway.h"
#include "ops/attention/cpu/attention_worker-inl.h"

PAGODA_ATTENTION_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {

// Calls `use` with the type of the AttentionWorker for keys and values that are codes.
template <bool kHasVnni, typename Use>
auto with_vnni_or_none(const AttentionCall& call, Use&& use) {
  constexpr KvFormat kInt8 = KvFormat::kInt8, kInt4 = KvFormat::kInt4;
  if (call.keys.format == kInt4)
    return use(std::type_identity<AttentionWorker<CodeDots<kInt4, kInt4, kHasVnni>>>());
  if (call.values.format == kInt4)
    return use(std::type_identity<AttentionWorker<CodeDots<kInt8, kInt4, kHasVnni>>>());
  return use(std::type_identity<AttentionWorker<CodeDots<kInt8, kInt8, kHasVnni>>>());
}

// Calls `use` with the type for the target's instructions, and on AVX2 for AVX-VNNI if the call has
// it.
template <typename Use>
auto with_code_worker(const AttentionCall& call, Use&& use) {
#if HWY_TARGET == HWY_AVX2
  if (call.has_avx_vnni) return with_vnni_or_none<true>(call, use);
#endif
  return with_vnni_or_none<PAGODA_HAS_PAIR_DOTS != 0>(call, use);
}

std::int64_t scratch_floats_code(const AttentionCall& call, const AttentionPlan::Counts& counts) {
  return with_code_worker(
      call, [&](auto type) { return decltype(type)::type::scratch_floats(call, counts); });
}

void attend_code(const AttentionCall& call, const AttentionPlan::Counts& counts,
                 AttentionQueue& queue, int thread, AttentionScratch scratch) {
  with_code_worker(call, [&](auto type) {
    typename decltype(type)::type worker(call, counts, scratch);
    worker.run(queue, thread);
  });
}

void merge_code(const AttentionCall& call, const AttentionPlan::Counts& counts,
                std::span<const AttentionItem> splits, AttentionScratch scratch) {
  with_code_worker(call, [&](auto type) {
    typename decltype(type)::type worker(call, counts, scratch);
    for (const AttentionItem& split : splits) worker.merge(split);
  });
}

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pagoda::cpu {

HWY_EXPORT(scratch_floats_code);
HWY_EXPORT(attend_code);
HWY_EXPORT(merge_code);

AttentionWorkers code_workers() {
  return {HWY_DYNAMIC_DISPATCH(scratch_floats_code), HWY_DYNAMIC_DISPATCH(attend_code),
          HWY_DYNAMIC_DISPATCH(merge_code)};
}

}  // namespace pagoda::cpu
#endif  // HWY_ONCE
