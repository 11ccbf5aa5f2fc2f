// This machine's limits: what no kernel can pass. Every figure of speed is printed beside the limit
// measured in its own run, within seconds of it: a guest's limits change as its host moves it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace pagoda {

// All peaks are of `num_threads` threads together. GMAC/s: 10^9 products summed a second.
struct MachineLimits {
  int num_threads = 0;
  // One ascending stream a thread, from memory, lines asked for ahead or not, whichever is faster;
  // GB = 10^9 bytes.
  double read_gb_per_s = 0;
  double float32_gmac_per_s = 0;  // fused multiply-adds in the widest vectors
  // Dot products of bf16 and of 16-bit and 8-bit integers, by the instruction that makes most of
  // them, AMX's tiles where there are any; absent where the machine has none.
  std::optional<double> bf16_gmac_per_s;
  std::optional<double> int16_gmac_per_s;
  std::optional<double> int8_gmac_per_s;

  // Returns the limit that matrix products are held to: the bf16 peak, float32's where there is
  // none.
  double product_gmac_per_s() const { return bf16_gmac_per_s.value_or(float32_gmac_per_s); }
};

// Returns the better of two measurements, figure by figure: what disturbs one only makes it
// smaller.
MachineLimits best_of(const MachineLimits& a, const MachineLimits& b);

// Reads `num_bytes`, a multiple of 4096 of aligned memory, and ORs them together: as cheap as a
// read can be. Lines are asked for 8 KB ahead, past the caches, which helps where a stream is
// short.
std::uint64_t read_fetching_ahead(const std::byte* bytes, std::size_t num_bytes);

// Measures again and again: before and after whatever its limits are held against. Not thread-safe;
// starts its own threads in each call and leaves none behind.
class MachineProbe {
 public:
  // Touches 256 MiB a thread, in huge pages where there are any: several times any cache, so that
  // no more of it is found there than of a model's weights. Half of the memory that is left at
  // most, so that a limit of a small machine may be too high. 0: default_num_threads().
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
  std::vector<std::unique_ptr<void, Unmap>> buffers_;  // one a thread
};

}  // namespace pagoda
