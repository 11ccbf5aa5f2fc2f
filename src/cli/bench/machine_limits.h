// This machine's limits, which no kernel can exceed. Every speed is printed beside the limit
// measured in the same run, within seconds: a virtual machine's limits change when its host moves
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace pagoda {

// All peaks are of `num_threads` threads together. GMAC/s: 10^9 multiply-adds per second.
struct MachineLimits {
  int num_threads = 0;
  // Reads of memory, one ascending stream per thread, with or without prefetches, whichever is
  // fastest; GB = 10^9 bytes.
  double read_gb_per_s = 0;
  double float32_gmac_per_s = 0;  // fused multiply-adds in the widest vectors
  // Dot products of bf16 and of 16-bit and 8-bit integers, by the fastest instruction, AMX's tiles
  // included; absent if the machine has no such instruction.
  std::optional<double> bf16_gmac_per_s;
  std::optional<double> int16_gmac_per_s;
  std::optional<double> int8_gmac_per_s;

  // Returns the limit that matrix products are compared with: the bf16 peak, or float32's if there
  // is none.
  double product_gmac_per_s() const { return bf16_gmac_per_s.value_or(float32_gmac_per_s); }
};

// Returns the better of two measurements, figure by figure: disturbances only make a figure
// smaller.
MachineLimits best_of(const MachineLimits& a, const MachineLimits& b);

// Reads `num_bytes`, a multiple of 4096 of aligned memory, and ORs them together, as cheaply as
// reads can be. Prefetches lines 8 KB ahead, non-temporally, which helps with short streams.
std::uint64_t read_fetching_ahead(const std::byte* bytes, std::size_t num_bytes);

// Measures the limits each time it is asked to: before and after the work that they are compared
// with. Not thread-safe. Each call starts its own threads and joins them.
class MachineProbe {
 public:
  // Touches 256 MiB per thread, in huge pages if possible. This is several times the size of any
  // cache, so that caches hold no more of it than of a model's weights. It is at most half of the
  // free memory, so that a small machine's limit may be too high. num_threads 0:
  // default_num_threads().
  explicit MachineProbe(int num_threads);
  ~MachineProbe();
  MachineProbe(const MachineProbe&) = delete;
  MachineProbe& operator=(const MachineProbe&) = delete;

  int num_threads() const { return num_threads_; }
  MachineLimits measure() const;         // about 0.1 s
  double measure_read_gb_per_s() const;  // about 50 ms

 private:
  struct Unmap {
    std::size_t num_bytes;
    void operator()(void* memory) const;
  };
  int num_threads_;
  std::size_t bytes_per_thread_;
  std::vector<std::unique_ptr<void, Unmap>> buffers_;  // one per thread
};

}  // namespace pagoda
