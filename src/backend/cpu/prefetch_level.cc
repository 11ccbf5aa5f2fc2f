#include "backend/cpu/prefetch_level.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace pagoda {
namespace {

#if defined(__x86_64__)
// As AMD counts them: the base family and the extended one.
unsigned int family_of(unsigned int signature) {
  return ((signature >> 8) & 15) + ((signature >> 20) & 255);
}

bool is_amd_family(unsigned int family) {
  unsigned int eax = 0, ebx = 0, ecx = 0, edx = 0;
  const bool is_amd = __get_cpuid(0, &eax, &ebx, &ecx, &edx) != 0 && ebx == signature_AMD_ebx &&
                      ecx == signature_AMD_ecx && edx == signature_AMD_edx;
  return is_amd && __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && family_of(eax) == family;
}
#endif

PrefetchLevel find_prefetch_level() {
#if defined(__x86_64__)
  constexpr unsigned int kZen3And4 = 0x19;
  if (is_amd_family(kZen3And4)) return PrefetchLevel::kSecond;
#endif
  return PrefetchLevel::kFirst;
}

}  // namespace

PrefetchLevel prefetch_level() noexcept {
  static const PrefetchLevel level = find_prefetch_level();
  return level;
}

}  // namespace pagoda
