#include "ops/apply_token_mask/apply_token_mask.metal"

#include "tests/metal/emulator/register_kernel.h"

PAGODA_REGISTER_KERNEL(apply_token_mask, float)
PAGODA_REGISTER_KERNEL(apply_token_mask, half)
PAGODA_REGISTER_KERNEL(apply_token_mask, bfloat)
