#include "ops/linear/linear_kernels.h"

namespace pagoda::cpu {

const LinearKernels* const kAvx512Kernels = nullptr;

}  // namespace pagoda::cpu
