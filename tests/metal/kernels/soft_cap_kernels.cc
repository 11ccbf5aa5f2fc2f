#include "ops/soft_cap/soft_cap.metal"

#include "tests/metal/emulator/register_kernel.h"

PAGODA_REGISTER_KERNEL(soft_cap, 4)
PAGODA_REGISTER_KERNEL(soft_cap, 1)
