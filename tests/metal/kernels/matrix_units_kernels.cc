#include "backend/gpu/matrix_units.metal"
#include "tests/metal/emulator/register_kernel.h"

PAGODA_REGISTER_KERNEL(matrix_units)
