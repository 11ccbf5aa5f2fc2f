// Parameters of gpu_peaks.metal.
#ifndef PAGODA_GPU_PEAKS_METAL_H
#define PAGODA_GPU_PEAKS_METAL_H

struct GpuPeaksParameters {
  int count;     // words per threadgroup, or rounds
  float factor;  // each fma of a chain: s = s factor + added
  float added;
};

#endif  // PAGODA_GPU_PEAKS_METAL_H
