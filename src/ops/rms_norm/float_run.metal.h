// Runs of consecutive floats between device memory and registers, up to 16 bytes at once.
#ifndef PAGODA_FLOAT_RUN_METAL_H
#define PAGODA_FLOAT_RUN_METAL_H

// Reads kCount floats. is_aligned: `from` is at a multiple of 16 bytes, or of kCount floats if
// these are fewer bytes.
template <int kCount>
inline void load_run(device const float* from, bool is_aligned, thread float* to) {
  if (kCount % 4 == 0 && is_aligned) {
    for (int i = 0; i < kCount; i += 4) {
      const float4 four = *(device const float4*)(from + i);
      to[i] = four.x;
      to[i + 1] = four.y;
      to[i + 2] = four.z;
      to[i + 3] = four.w;
    }
  } else if (kCount % 4 == 2 && is_aligned) {
    for (int i = 0; i < kCount; i += 2) {
      const float2 two = *(device const float2*)(from + i);
      to[i] = two.x;
      to[i + 1] = two.y;
    }
  } else {
    for (int i = 0; i < kCount; ++i) to[i] = from[i];
  }
}

// Writes kCount floats. REQUIRES: `to` is aligned, as load_run() describes it.
template <int kCount>
inline void store_run(thread const float* from, device float* to) {
  if (kCount % 4 == 0) {
    for (int i = 0; i < kCount; i += 4) {
      float4 four;
      four.x = from[i];
      four.y = from[i + 1];
      four.z = from[i + 2];
      four.w = from[i + 3];
      *(device float4*)(to + i) = four;
    }
  } else if (kCount % 4 == 2) {
    for (int i = 0; i < kCount; i += 2) {
      float2 two;
      two.x = from[i];
      two.y = from[i + 1];
      *(device float2*)(to + i) = two;
    }
  } else {
    for (int i = 0; i < kCount; ++i) to[i] = from[i];
  }
}

#endif  // PAGODA_FLOAT_RUN_METAL_H
