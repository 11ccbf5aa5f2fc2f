#include "ops/linear/kernel_choice.h"

#include <array>

#include "backend/cpu/cpu_exec.h"

namespace pagoda::cpu {
namespace {

KernelChoice choose(CpuIsa isa, bool rounds_to_int8, PanelKind kind) {
  const LinearKernels* best = nullptr;
  if (isa == CpuIsa::kAmx) best = kAmxKernels;
  if (isa == CpuIsa::kAvx512) best = kAvx512Kernels;
  if (isa == CpuIsa::kAvx2) best = kAvx2Kernels;
  if (isa == CpuIsa::kNeon) best = kNeonKernels;
  KernelChoice choice = {best, {}};
  const bool has_int8 = best != nullptr && best->int8_layout_of != nullptr;
  if (has_int8 && rounds_to_int8 && best->int8_layout_of(kind, choice.layout)) return choice;
  if (best != nullptr && best->layout_of(kind, choice.layout)) return choice;
  choice.kernels = kPortableKernels;
  kPortableKernels->layout_of(kind, choice.layout);
  return choice;
}

// All choices of an instruction set, with x in 16 bits and in bytes. They are made once: a decode
// step needs some hundred, and each takes a tenth of a microsecond to make.
using Choices = std::array<std::array<KernelChoice, kNumPanelKinds>, 2>;

constexpr int kNumIsas = static_cast<int>(CpuIsa::kAmx) + 1;

std::array<Choices, kNumIsas> choose_all() {
  std::array<Choices, kNumIsas> all;
  for (int isa = 0; isa < kNumIsas; ++isa) {
    for (const bool rounds_to_int8 : {false, true}) {
      for (int kind = 0; kind < kNumPanelKinds; ++kind) {
        all[isa][rounds_to_int8][kind] =
            choose(static_cast<CpuIsa>(isa), rounds_to_int8, static_cast<PanelKind>(kind));
      }
    }
  }
  return all;
}

}  // namespace

const KernelChoice& kernels_of(const Exec& exec, PanelKind kind) {
  static const std::array<Choices, kNumIsas> all = choose_all();
  return all[static_cast<int>(isa_of(exec))][rounds_to_int8(exec)][static_cast<int>(kind)];
}

}  // namespace pagoda::cpu
