// This machine's limits: what no kernel can pass. Every figure of speed is printed beside the limit
// measured in its own run.
#pragma once

#include <optional>
#include <vector>

namespace pagoda {

// All peaks are of `num_threads` threads together. GMAC/s: 10^9 products summed a second.
struct MachineLimits {
  int num_threads = 0;
  double read_gb_per_s = 0;       // one ascending stream a thread, from memory; GB = 10^9 bytes
  double float32_gmac_per_s = 0;  // fused multiply-adds in the widest vectors
  std::optional<double>
      bf16_gmac_per_s;  // dot products of bf16 pairs; absent where the machine has none
  std::optional<double> int8_gmac_per_s;  // dot products of int8 quadruples
};

// Takes about 0.3 s and touches 64 MiB a thread, past any cache worth counting on. Blocks; starts
// its own threads.
double measure_read_gb_per_s(int num_threads);
// Takes about half a second.
MachineLimits measure_machine_limits(int num_threads);

}  // namespace pagoda
