#include "ops/select_rows/select_rows.metal"

#include "tests/metal/emulator/register_kernel.h"

PAGODA_REGISTER_KERNEL(select_rows, 4)
PAGODA_REGISTER_KERNEL(select_rows, 1)
