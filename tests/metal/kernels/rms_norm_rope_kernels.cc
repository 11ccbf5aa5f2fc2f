#include "ops/rms_norm_rope/rms_norm_rope.metal"

#include "tests/metal/emulator/register_kernel.h"

PAGODA_REGISTER_KERNEL(rms_norm_rope, 2)
PAGODA_REGISTER_KERNEL(rms_norm_rope, 16)
PAGODA_REGISTER_KERNEL(rms_norm_rope, 24)
PAGODA_REGISTER_KERNEL(rms_norm_rope, 32)
PAGODA_REGISTER_KERNEL(rms_norm_rope, 128)
