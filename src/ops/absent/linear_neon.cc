#include "ops/linear/linear_kernels.h"

namespace pagoda::cpu {

const LinearKernels* const kNeonKernels = nullptr;

}  // namespace pagoda::cpu
