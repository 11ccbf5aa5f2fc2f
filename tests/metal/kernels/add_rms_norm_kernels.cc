#include "ops/add_rms_norm/add_rms_norm.metal"

#include "tests/metal/emulator/register_kernel.h"

PAGODA_REGISTER_KERNEL(add_rms_norm, 4)
PAGODA_REGISTER_KERNEL(add_rms_norm, 1)
