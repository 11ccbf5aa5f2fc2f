#include "ops/gate_heads/gate_heads.metal"

#include "tests/metal/emulator/register_kernel.h"

PAGODA_REGISTER_KERNEL(gate_heads, 4)
PAGODA_REGISTER_KERNEL(gate_heads, 1)
