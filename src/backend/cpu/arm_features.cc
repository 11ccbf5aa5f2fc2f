#include "backend/cpu/arm_features.h"

#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#elif defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>

#include <cstddef>
#endif

namespace pagoda {

#if defined(__aarch64__) && defined(__linux__)
ArmFeatures arm_features() noexcept {
  return {.has_dot_product = (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0,
          .has_matrix_product = (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0};
}
#elif defined(__aarch64__) && defined(__APPLE__)
namespace {

bool has_feature(const char* name) noexcept {
  int value = 0;
  std::size_t size = sizeof(value);
  const int failed = sysctlbyname(name, &value, &size, nullptr, 0);
  return failed == 0 && value != 0;
}

}  // namespace

ArmFeatures arm_features() noexcept {
  return {.has_dot_product = has_feature("hw.optional.arm.FEAT_DotProd"),
          .has_matrix_product = has_feature("hw.optional.arm.FEAT_I8MM")};
}
#else
ArmFeatures arm_features() noexcept {
  return {};
}
#endif

}  // namespace pagoda
