#include "ops/route/route.metal"

#include "tests/metal/emulator/register_kernel.h"

PAGODA_REGISTER_KERNEL(route, 1)
PAGODA_REGISTER_KERNEL(route, 2)
PAGODA_REGISTER_KERNEL(route, 4)
PAGODA_REGISTER_KERNEL(route, 8)
PAGODA_REGISTER_KERNEL(route, 16)
