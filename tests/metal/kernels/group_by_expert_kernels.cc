#include "ops/group_by_expert/group_by_expert.metal"

#include "tests/metal/emulator/register_kernel.h"

PAGODA_REGISTER_KERNEL(group_by_expert)
