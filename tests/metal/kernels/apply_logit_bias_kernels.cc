#include "ops/apply_logit_bias/apply_logit_bias.metal"

#include "tests/metal/emulator/register_kernel.h"

PAGODA_REGISTER_KERNEL(apply_logit_bias, float)
PAGODA_REGISTER_KERNEL(apply_logit_bias, half)
PAGODA_REGISTER_KERNEL(apply_logit_bias, bfloat)
