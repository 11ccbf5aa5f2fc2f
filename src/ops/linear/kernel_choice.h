// The choice of the kernels that multiply a kind of panels on an Exec.
#pragma once

#include "ops/linear/linear_kernels.h"
#include "tensor/exec.h"

namespace pagoda::cpu {

struct KernelChoice {
  const LinearKernels* kernels = nullptr;
  ActivationLayout layout;
};

// Returns the kernels for the Exec's instruction set, or portable ones if it has none for the kind.
const KernelChoice& kernels_of(const Exec& exec, PanelKind kind);

}  // namespace pagoda::cpu
