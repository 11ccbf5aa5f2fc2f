#include "backend/cpu/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/vector_targets.cc"
#include "hwy/foreach_target.h"  // compiles this file once a target

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {

const char* own_name() {
  return hwy::TargetName(HWY_TARGET);
}

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pagoda::cpu {

HWY_EXPORT(own_name);

namespace {

std::int64_t allowed_targets(CpuIsa isa) {
#if HWY_ARCH_X86
  constexpr std::int64_t kPortable = HWY_SSE4 | HWY_SSSE3;
  if (includes_avx512(isa)) return kPortable | HWY_AVX2 | HWY_AVX3 | HWY_AVX3_DL;
  return isa == CpuIsa::kAvx2 ? kPortable | HWY_AVX2 : kPortable;
#else
  return ~std::int64_t{0};  // there is one target, which every machine has
#endif
}

}  // namespace

std::vector<VectorTarget> vector_targets() {
  std::vector<VectorTarget> targets;
  for (const std::int64_t id : hwy::SupportedAndGeneratedTargets()) {
    targets.push_back({id, hwy::TargetName(id)});
  }
  return targets;
}

OnlyVectorTarget::OnlyVectorTarget(const VectorTarget& target) {
  hwy::SetSupportedTargetsForTest(target.id);
}

OnlyVectorTarget::~OnlyVectorTarget() {
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

void choose_vector_target(CpuIsa isa) {
  hwy::GetChosenTarget().Update(hwy::SupportedTargets() & allowed_targets(isa));
}

std::string_view running_vector_target() {
  return HWY_DYNAMIC_DISPATCH(own_name)();
}

}  // namespace pagoda::cpu
#endif  // HWY_ONCE
