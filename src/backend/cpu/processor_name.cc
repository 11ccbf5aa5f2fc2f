#include "backend/cpu/processor_name.h"

#include <fmt/format.h>

#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace pagoda {

std::string processor_name() {
#if defined(__x86_64__)
  constexpr unsigned int kFirstLeaf = 0x80000002, kNumLeaves = 3;
  unsigned int words[4 * kNumLeaves + 1] = {};
  for (unsigned int i = 0; i < kNumLeaves; ++i) {
    unsigned int* const of_leaf = words + 4 * i;
    if (!__get_cpuid(kFirstLeaf + i, of_leaf, of_leaf + 1, of_leaf + 2, of_leaf + 3)) break;
  }
  char text[sizeof(words)];
  std::memcpy(text, words, sizeof(words));
  std::string name = text;
  name.erase(0, name.find_first_not_of(' '));
  name.erase(name.find_last_not_of(' ') + 1);
  unsigned int signature = 0, ebx = 0, ecx = 0, edx = 0;
  __get_cpuid(1, &signature, &ebx, &ecx, &edx);
  return fmt::format("{} {:08x}", name, signature);
#else
  return "unknown";
#endif
}

}  // namespace pagoda
