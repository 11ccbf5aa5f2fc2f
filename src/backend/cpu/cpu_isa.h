// CpuIsa: the instruction set that one cpu Exec computes with.
//
// An op's body that is written for each instruction set asks CpuExec::isa(). Bodies that Highway
// compiles follow it too: the ISA is the most that they use (backend/cpu/vector_targets.h).
// Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace pagoda {

enum class CpuIsa : std::uint8_t {
  kPortable,  // what every machine of this architecture has
  kNeon,      // Arm's 128-bit vectors
  kAvx2,      // AVX2, FMA, F16C; attention on codes uses AVX-VNNI besides where the machine has it
  kAvx512,    // AVX-512 F, BW, DQ, VL, VBMI, VNNI, BF16: Zen 4, Sapphire Rapids and later
  // AVX-512 with AMX's tiles: of bytes for products of many rows, in the same bits, and of bfloat16
  // for attention on keys and values in bfloat16.
  kAmx,
};
std::string_view cpu_isa_name(CpuIsa isa);  // "portable", "neon", "avx2", "avx512", "amx"

// Lists the instruction sets of this machine, best first; kPortable is always among them.
std::vector<CpuIsa> supported_cpu_isas();

// Returns what the environment variable PAGODA_CPU_ISA names, or else the best that this machine
// has. kInvalidArgument for an unknown name, kUnsupported for one that this machine lacks.
Result<CpuIsa> choose_cpu_isa();

// Does the same from its part; "" asks for the best.
Result<CpuIsa> choose_cpu_isa(std::string_view name);

// Returns whether `isa` has AVX-512's instructions.
constexpr bool includes_avx512(CpuIsa isa) {
  return isa == CpuIsa::kAvx512 || isa == CpuIsa::kAmx;
}

enum class AmxState : std::uint8_t { kAbsent, kForbidden, kUsable };
// Returns whether this machine has AMX's tiles of bytes and of bfloat16, and the system lets this
// process use them. The first call asks it to.
AmxState amx_state() noexcept;

// Returns whether this machine has AVX-VNNI, dot products of 16-bit integers in AVX2's vectors: Intel's
// processors from Alder Lake on, AMD's from Zen 5 on.
bool has_avx_vnni() noexcept;

// Checks that this machine has `isa`. kUnsupported where this machine lacks it.
Status check_cpu_isa(CpuIsa isa);

}  // namespace pagoda
