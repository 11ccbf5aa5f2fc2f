#include "ops/clamp/clamp.metal"

#include "tests/metal/emulator/register_kernel.h"

PAGODA_REGISTER_KERNEL(clamp_numbers, 4)
PAGODA_REGISTER_KERNEL(clamp_numbers, 1)
