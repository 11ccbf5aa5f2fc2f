#include "ops/top_k_top_p_min_p/top_k_top_p_min_p.metal"

#include "tests/metal/emulator/register_kernel.h"

PAGODA_REGISTER_KERNEL(top_k_top_p_min_p)
