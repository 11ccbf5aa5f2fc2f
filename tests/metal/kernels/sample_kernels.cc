#include "ops/sample/sample.metal"

#include "tests/metal/emulator/register_kernel.h"

PAGODA_REGISTER_KERNEL(sample)
PAGODA_REGISTER_KERNEL(sample_filtered)
