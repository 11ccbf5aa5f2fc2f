#include "ops/resolve_tokens/resolve_tokens.metal"

#include "tests/metal/emulator/register_kernel.h"

PAGODA_REGISTER_KERNEL(resolve_tokens)
