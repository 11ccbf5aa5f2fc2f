#include "ops/log_probs/log_probs.metal"

#include "tests/metal/emulator/register_kernel.h"

PAGODA_REGISTER_KERNEL(log_probs, float)
PAGODA_REGISTER_KERNEL(log_probs, half)
PAGODA_REGISTER_KERNEL(log_probs, bfloat)
