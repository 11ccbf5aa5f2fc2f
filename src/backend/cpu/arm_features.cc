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
  return {.has_dot_product = (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0};
}
#elif defined(__aarch64__) && defined(__APPLE__)
ArmFeatures arm_features() noexcept {
  int value = 0;
  std::size_t size = sizeof(value);
  const int failed = sysctlbyname("hw.optional.arm.FEAT_DotProd", &value, &size, nullptr, 0);
  return {.has_dot_product = failed == 0 && value != 0};
}
#else
ArmFeatures arm_features() noexcept {
  return {};
}
#endif

}  // namespace pagoda
