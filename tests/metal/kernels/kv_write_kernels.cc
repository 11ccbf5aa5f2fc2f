#include "ops/kv_write/kv_write.metal"

#include "tests/metal/emulator/register_kernel.h"

PAGODA_REGISTER_KERNEL(kv_write, float, 4)
PAGODA_REGISTER_KERNEL(kv_write, float, 1)
PAGODA_REGISTER_KERNEL(kv_write, bfloat, 4)
PAGODA_REGISTER_KERNEL(kv_write, bfloat, 1)
PAGODA_REGISTER_KERNEL(kv_write, half, 4)
PAGODA_REGISTER_KERNEL(kv_write, half, 1)
