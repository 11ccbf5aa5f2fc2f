#include "ops/linear/kernel_choice.h"

#include "backend/cpu/cpu_exec.h"

namespace pagoda::cpu {

KernelChoice kernels_of(const Exec& exec, PanelKind kind) {
  const CpuIsa isa = isa_of(exec);
  const LinearKernels* best = nullptr;
  if (isa == CpuIsa::kAmx) best = kAmxKernels;
  if (isa == CpuIsa::kAvx512) best = kAvx512Kernels;
  if (isa == CpuIsa::kAvx2) best = kAvx2Kernels;
  if (isa == CpuIsa::kNeon) best = kNeonKernels;
  KernelChoice choice = {best, {}};
  const bool has_int8 = best != nullptr && best->int8_layout_of != nullptr;
  if (has_int8 && rounds_to_int8(exec) && best->int8_layout_of(kind, choice.layout)) return choice;
  if (best != nullptr && best->layout_of(kind, choice.layout)) return choice;
  choice.kernels = kPortableKernels;
  kPortableKernels->layout_of(kind, choice.layout);
  return choice;
}

}  // namespace pagoda::cpu
