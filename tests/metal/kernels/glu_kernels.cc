#include "ops/glu/glu.metal"

#include "tests/metal/emulator/register_kernel.h"

PAGODA_REGISTER_KERNEL(glu, 4)
PAGODA_REGISTER_KERNEL(glu, 1)
