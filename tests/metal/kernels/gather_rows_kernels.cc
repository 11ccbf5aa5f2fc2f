#include "ops/gather_rows/gather_rows.metal"

#include "tests/metal/emulator/register_kernel.h"

#define PAGODA_REGISTER_AFFINE_OF(BITS, SCALE)                 \
  PAGODA_REGISTER_KERNEL(gather_rows, Affine, BITS, 32, SCALE) \
  PAGODA_REGISTER_KERNEL(gather_rows, Affine, BITS, 64, SCALE) \
  PAGODA_REGISTER_KERNEL(gather_rows, Affine, BITS, 128, SCALE)
#define PAGODA_REGISTER_AFFINE(BITS)     \
  PAGODA_REGISTER_AFFINE_OF(BITS, float) \
  PAGODA_REGISTER_AFFINE_OF(BITS, half)  \
  PAGODA_REGISTER_AFFINE_OF(BITS, bfloat)

PAGODA_REGISTER_KERNEL(gather_rows, F32, 32, 128, float)
PAGODA_REGISTER_KERNEL(gather_rows, F16, 16, 128, half)
PAGODA_REGISTER_KERNEL(gather_rows, BF16, 16, 128, bfloat)
PAGODA_REGISTER_KERNEL(gather_rows, Q8_0, 8, 32, half)
PAGODA_REGISTER_KERNEL(gather_rows, Q4_0, 4, 32, half)
PAGODA_REGISTER_KERNEL(gather_rows, Q4_1, 4, 32, half)
PAGODA_REGISTER_KERNEL(gather_rows, Q5_0, 5, 32, half)
PAGODA_REGISTER_KERNEL(gather_rows, Q5_1, 5, 32, half)
PAGODA_REGISTER_KERNEL(gather_rows, Q2_K, 2, 16, half)
PAGODA_REGISTER_KERNEL(gather_rows, Q3_K, 3, 16, half)
PAGODA_REGISTER_KERNEL(gather_rows, Q4_K, 4, 32, half)
PAGODA_REGISTER_KERNEL(gather_rows, Q5_K, 5, 32, half)
PAGODA_REGISTER_KERNEL(gather_rows, Q6_K, 6, 16, half)
PAGODA_REGISTER_KERNEL(gather_rows, IQ4_NL, 4, 32, half)
PAGODA_REGISTER_KERNEL(gather_rows, IQ4_XS, 4, 32, half)
PAGODA_REGISTER_KERNEL(gather_rows, MXFP4, 4, 32, uchar)
PAGODA_REGISTER_AFFINE(2)
PAGODA_REGISTER_AFFINE(3)
PAGODA_REGISTER_AFFINE(4)
PAGODA_REGISTER_AFFINE(5)
PAGODA_REGISTER_AFFINE(6)
PAGODA_REGISTER_AFFINE(8)
