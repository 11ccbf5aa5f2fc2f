#include "ops/kv_copy_blocks/kv_copy_blocks.metal"

#include "tests/metal/emulator/register_kernel.h"

PAGODA_REGISTER_KERNEL(kv_copy_blocks, uint4)
PAGODA_REGISTER_KERNEL(kv_copy_blocks, uint)
PAGODA_REGISTER_KERNEL(kv_copy_blocks, ushort)
PAGODA_REGISTER_KERNEL(kv_copy_blocks, uchar)
