#include "ops/count_tokens/count_tokens.metal"

#include "tests/metal/emulator/register_kernel.h"

PAGODA_REGISTER_KERNEL(count_tokens_clear)
PAGODA_REGISTER_KERNEL(count_tokens)
