#include "ops/linear/linear_kernels.h"

namespace pagoda::cpu {

const LinearKernels* const kAmxKernels = nullptr;

}  // namespace pagoda::cpu
