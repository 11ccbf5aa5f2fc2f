// CpuIsa: the instruction set that one cpu Exec computes with.
//
// An op's body that is written for each instruction set asks CpuExec::isa(). Bodies that Highway
// compiles use at most this ISA, too (backend/cpu/vector_targets.h). Thread-safe.
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
  kAvx2,      // AVX2, FMA, F16C; attention on quantized KV also uses AVX-VNNI if it is there
  kAvx512,    // AVX-512 F, BW, DQ, VL, VBMI, VNNI, BF16: Zen 4, Sapphire Rapids and later
  // AVX-512 and AMX's tiles. Tiles of bytes compute products of many rows, with the bits that
  // AVX-512 gives. Tiles of bfloat16 compute attention on keys and values in bfloat16.
  kAmx,
};
std::string_view cpu_isa_name(CpuIsa isa);  // "portable", "neon", "avx2", "avx512", "amx"

// Lists the instruction sets of this machine, best first; kPortable is always among them.
std::vector<CpuIsa> supported_cpu_isas();

// Returns the ISA that the environment variable PAGODA_CPU_ISA names, or else this machine's best.
// kInvalidArgument for an unknown name, kUnsupported for an ISA that this machine lacks.
Result<CpuIsa> choose_cpu_isa();

// Does the same for a given name; "" selects the best.
Result<CpuIsa> choose_cpu_isa(std::string_view name);

// Returns whether `isa` has AVX-512's instructions.
constexpr bool includes_avx512(CpuIsa isa) {
  return isa == CpuIsa::kAvx512 || isa == CpuIsa::kAmx;
}

enum class AmxState : std::uint8_t { kAbsent, kForbidden, kUsable };
// Returns whether this machine has AMX's tiles of bytes and of bfloat16, and the system lets this
// process use them. The first call asks the system for permission.
AmxState amx_state() noexcept;

// Returns whether this machine has AVX-VNNI: dot products of 16-bit integers in AVX2's vectors.
// Intel's processors have it from Alder Lake on, AMD's from Zen 5 on.
bool has_avx_vnni() noexcept;

// Checks that this machine has `isa`; else kUnsupported.
Status check_cpu_isa(CpuIsa isa);

}  // namespace pagoda
