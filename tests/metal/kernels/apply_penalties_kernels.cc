#include "ops/apply_penalties/apply_penalties.metal"

#include "tests/metal/emulator/register_kernel.h"

PAGODA_REGISTER_KERNEL(apply_penalties, float)
PAGODA_REGISTER_KERNEL(apply_penalties, half)
PAGODA_REGISTER_KERNEL(apply_penalties, bfloat)
