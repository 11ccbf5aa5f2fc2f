#include "ops/rms_norm/rms_norm.metal"

#include "tests/metal/emulator/register_kernel.h"

PAGODA_REGISTER_KERNEL(rms_norm, 4)
PAGODA_REGISTER_KERNEL(rms_norm, 1)
