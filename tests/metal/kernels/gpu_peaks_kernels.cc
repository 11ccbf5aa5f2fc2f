#include "backend/gpu/gpu_peaks.metal"
#include "tests/metal/emulator/register_kernel.h"

PAGODA_REGISTER_KERNEL(gpu_peaks_fill)
PAGODA_REGISTER_KERNEL(gpu_peaks_read)
PAGODA_REGISTER_KERNEL(gpu_peaks_fma)
