#include "ops/linear/linear_kernels.h"

namespace pagoda::cpu {

const LinearKernels* const kAvx2Kernels = nullptr;

}  // namespace pagoda::cpu
