#include "backend/cpu/prefetch_level.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace pagoda {
namespace {

#if defined(__x86_64__)
// Returns the family as AMD counts it: the base family plus the extended one.
unsigned int family_of(unsigned int signature) {
  return ((signature >> 8) & 15) + ((signature >> 20) & 255);
}

#endif

constexpr unsigned int kZen3And4 = 0x19, kZen5 = 0x1a;

// Returns the family of an AMD processor; 0 for other processors.
unsigned int amd_family() noexcept {
#if defined(__x86_64__)
  static const unsigned int family = [] {
    unsigned int eax = 0, ebx = 0, ecx = 0, edx = 0;
    const bool is_amd = __get_cpuid(0, &eax, &ebx, &ecx, &edx) != 0 && ebx == signature_AMD_ebx &&
                        ecx == signature_AMD_ecx && edx == signature_AMD_edx;
    return is_amd && __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 ? family_of(eax) : 0;
  }();
  return family;
#else
  return 0;
#endif
}

}  // namespace

PrefetchLevel prefetch_level() noexcept {
  return amd_family() == kZen3And4 ? PrefetchLevel::kSecond : PrefetchLevel::kFirst;
}

WeightPrefetch weight_prefetch() noexcept {
  if (amd_family() == kZen3And4) return WeightPrefetch::kSecondLevelHalf;
  return amd_family() >= kZen5 ? WeightPrefetch::kPastCaches : WeightPrefetch::kSecondLevel;
}

FetchTime fetch_time() noexcept {
  return amd_family() != 0 ? FetchTime::kAllAreDone : FetchTime::kOwnPartIsDone;
}

}  // namespace pagoda
