#include "ops/rope/rope.metal"

#include "tests/metal/emulator/register_kernel.h"

PAGODA_REGISTER_KERNEL(rope_angles)
PAGODA_REGISTER_KERNEL(rope, 2)
PAGODA_REGISTER_KERNEL(rope, 16)
PAGODA_REGISTER_KERNEL(rope, 24)
PAGODA_REGISTER_KERNEL(rope, 64)
PAGODA_REGISTER_KERNEL(rope, 128)
PAGODA_REGISTER_KERNEL(rope, 256)
