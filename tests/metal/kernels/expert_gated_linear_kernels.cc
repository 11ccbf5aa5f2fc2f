#include "ops/expert_gated_linear/expert_gated_linear.metal"

#include "tests/metal/emulator/register_kernel.h"

#define PAGODA_REGISTER_EXPERTS(FORMAT, BITS, GROUP, SCALE)                       \
  PAGODA_REGISTER_KERNEL(expert_gated_linear_few, FORMAT, BITS, GROUP, SCALE, 1)  \
  PAGODA_REGISTER_KERNEL(expert_gated_linear_few, FORMAT, BITS, GROUP, SCALE, 4)  \
  PAGODA_REGISTER_KERNEL(expert_gated_linear_many, FORMAT, BITS, GROUP, SCALE, 0) \
  PAGODA_REGISTER_KERNEL(expert_gated_linear_many, FORMAT, BITS, GROUP, SCALE, 1)

// The formats of cases and of the tests' checkpoints; gated_linear's kernels cover all.
PAGODA_REGISTER_EXPERTS(F32, 32, 128, float)
PAGODA_REGISTER_EXPERTS(BF16, 16, 128, bfloat)
PAGODA_REGISTER_EXPERTS(Q8_0, 8, 32, half)
PAGODA_REGISTER_EXPERTS(Q4_0, 4, 32, half)
PAGODA_REGISTER_EXPERTS(MXFP4, 4, 32, uchar)
PAGODA_REGISTER_EXPERTS(Q4_1, 4, 32, half)
