#include "ops/swiglu/swiglu.metal"

#include "tests/metal/emulator/register_kernel.h"

PAGODA_REGISTER_KERNEL(swiglu, 4)
PAGODA_REGISTER_KERNEL(swiglu, 1)
