#include "backend/cpu/cpu_isa.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace pagoda {
namespace {

constexpr std::array kCpuIsas = {CpuIsa::kPortable, CpuIsa::kNeon, CpuIsa::kAvx2, CpuIsa::kAvx512,
                                 CpuIsa::kAmx};

#if defined(__x86_64__)
// Returns whether AVX2, FMA and F16C can be used. __builtin_cpu_supports() also checks that the
// system saves the registers.
bool has_avx2() {
  unsigned int eax = 0, ebx = 0, ecx = 0, edx = 0;
  const bool has_f16c = __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
  return has_f16c && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vnni") &&
         __builtin_cpu_supports("avx512bf16");
}

// Asks Linux to save the tiles, 8 KB per thread. Linux does so only for processes that ask
// (Documentation/arch/x86/xstate.rst).
bool may_use_tiles() {
#if defined(__linux__)
  constexpr int kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

AmxState find_amx() {
  constexpr unsigned int kNeeded = 1u << 22 | 1u << 24 | 1u << 25;  // AMX-BF16, AMX-TILE, AMX-INT8
  unsigned int eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return AmxState::kAbsent;
  if ((edx & kNeeded) != kNeeded) return AmxState::kAbsent;
  return may_use_tiles() ? AmxState::kUsable : AmxState::kForbidden;
}
#endif

std::string names_of(const std::vector<CpuIsa>& isas) {
  std::string names;
  for (const CpuIsa isa : isas) {
    if (!names.empty()) names += ", ";
    names += cpu_isa_name(isa);
  }
  return names;
}

}  // namespace

std::string_view cpu_isa_name(CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kPortable:
      return "portable";
    case CpuIsa::kNeon:
      return "neon";
    case CpuIsa::kAvx2:
      return "avx2";
    case CpuIsa::kAvx512:
      return "avx512";
    case CpuIsa::kAmx:
      return "amx";
  }
  return "unknown";
}

std::vector<CpuIsa> supported_cpu_isas() {
  std::vector<CpuIsa> isas;
#if defined(__x86_64__)
  const bool has_tiles = amx_state() == AmxState::kUsable;
  if (has_avx2() && has_avx512() && has_tiles) isas.push_back(CpuIsa::kAmx);
  if (has_avx2() && has_avx512()) isas.push_back(CpuIsa::kAvx512);
  if (has_avx2()) isas.push_back(CpuIsa::kAvx2);
#elif defined(__aarch64__)
  isas.push_back(CpuIsa::kNeon);  // every AArch64 has it
#endif
  isas.push_back(CpuIsa::kPortable);
  return isas;
}

AmxState amx_state() noexcept {
#if defined(__x86_64__)
  static const AmxState state = find_amx();
  return state;
#else
  return AmxState::kAbsent;
#endif
}

bool has_avx_vnni() noexcept {
#if defined(__x86_64__)
  static const bool has = [] {
    constexpr unsigned int kAvxVnni = 1u << 4;
    unsigned int eax = 0, ebx = 0, ecx = 0, edx = 0;
    return has_avx2() && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 &&
           (eax & kAvxVnni) != 0;
  }();
  return has;
#else
  return false;
#endif
}

Status check_cpu_isa(CpuIsa isa) {
  const std::vector<CpuIsa> isas = supported_cpu_isas();
  if (std::ranges::find(isas, isa) != isas.end()) return ok_status();
  return unsupported("[device] cpu: this machine has {}, not {}", names_of(isas),
                     cpu_isa_name(isa));
}

Result<CpuIsa> choose_cpu_isa(std::string_view name) {
  if (name.empty()) return supported_cpu_isas().front();
  for (const CpuIsa isa : kCpuIsas) {
    if (cpu_isa_name(isa) != name) continue;
    PAGODA_RETURN_IF_ERROR(check_cpu_isa(isa));
    return isa;
  }
  return invalid_argument(
      "[device] cpu: expected an instruction set of {}, which this machine has, got {}",
      names_of(supported_cpu_isas()), name);
}

Result<CpuIsa> choose_cpu_isa() {
  const char* name = std::getenv("PAGODA_CPU_ISA");
  Result<CpuIsa> isa = choose_cpu_isa(name == nullptr ? std::string_view() : name);
  if (!isa.ok()) return isa.status().with_context("PAGODA_CPU_ISA");
  return isa;
}

}  // namespace pagoda
