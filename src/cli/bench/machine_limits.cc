#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cli/bench/machine_limits.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// Must follow foreach_target.h.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace pagoda {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Returns the bitwise or of all words, summed over the vector's lanes. num_bytes: a multiple of
// 4096. kWordsAhead: how far ahead lines are prefetched, non-temporally (kLocality 0) or into the
// second-level cache (2); 0: not at all.
template <std::size_t kWordsAhead, int kLocality>
std::uint64_t or_of(const std::uint64_t* HWY_RESTRICT words, std::size_t num_bytes) {
  const hn::ScalableTag<std::uint64_t> d;
  const std::size_t lanes = hn::Lanes(d);
  auto a = hn::Zero(d), b = a, c = a, e = a, f = a, g = a, h = a, k = a;
  for (std::size_t i = 0; i < num_bytes / 8; i += 8 * lanes) {
    if constexpr (kWordsAhead > 0) {
      for (std::size_t line = 0; line < 8 * lanes; line += 8)
        __builtin_prefetch(words + i + kWordsAhead + line, 0, kLocality);
    }
    a = hn::Or(a, hn::Load(d, words + i));
    b = hn::Or(b, hn::Load(d, words + i + lanes));
    c = hn::Or(c, hn::Load(d, words + i + 2 * lanes));
    e = hn::Or(e, hn::Load(d, words + i + 3 * lanes));
    f = hn::Or(f, hn::Load(d, words + i + 4 * lanes));
    g = hn::Or(g, hn::Load(d, words + i + 5 * lanes));
    h = hn::Or(h, hn::Load(d, words + i + 6 * lanes));
    k = hn::Or(k, hn::Load(d, words + i + 7 * lanes));
  }
  const auto all = hn::Or(hn::Or(hn::Or(a, b), hn::Or(c, e)), hn::Or(hn::Or(f, g), hn::Or(h, k)));
  return hn::GetLane(hn::SumOfLanes(d, all));
}

std::uint64_t read_all(const std::uint64_t* HWY_RESTRICT words, std::size_t num_bytes) {
  return or_of<0, 0>(words, num_bytes);
}

std::uint64_t read_all_fetching(const std::uint64_t* HWY_RESTRICT words, std::size_t num_bytes) {
  return or_of<1024, 0>(words, num_bytes);
}

std::uint64_t read_all_into_second_level(const std::uint64_t* HWY_RESTRICT words,
                                         std::size_t num_bytes) {
  return or_of<768, 2>(words, num_bytes);
}

// Runs twelve independent chains, which hide a latency of four cycles at two instructions per
// cycle. Returns the number of products.
double float32_products(std::size_t rounds, float* sink) {
  const hn::ScalableTag<float> d;
  const auto x = hn::Set(d, sink[0]);
  const auto y = hn::Set(d, sink[1]);
  // Different starts, else the compiler merges the twelve chains.
  const auto start = [&](int chain) { return hn::Set(d, sink[0] * static_cast<float>(chain)); };
  auto a = start(0), b = start(1), c = start(2), e = start(3), f = start(4), g = start(5);
  auto h = start(6), k = start(7), l = start(8), m = start(9), n = start(10), o = start(11);
  for (std::size_t i = 0; i < rounds; ++i) {
    a = hn::MulAdd(x, y, a);
    b = hn::MulAdd(x, y, b);
    c = hn::MulAdd(x, y, c);
    e = hn::MulAdd(x, y, e);
    f = hn::MulAdd(x, y, f);
    g = hn::MulAdd(x, y, g);
    h = hn::MulAdd(x, y, h);
    k = hn::MulAdd(x, y, k);
    l = hn::MulAdd(x, y, l);
    m = hn::MulAdd(x, y, m);
    n = hn::MulAdd(x, y, n);
    o = hn::MulAdd(x, y, o);
  }
  const auto half = hn::Add(hn::Add(hn::Add(a, b), hn::Add(c, e)), hn::Add(f, g));
  const auto rest = hn::Add(hn::Add(hn::Add(h, k), hn::Add(l, m)), hn::Add(n, o));
  sink[2] = hn::GetLane(hn::SumOfLanes(d, hn::Add(half, rest)));
  return static_cast<double>(rounds) * 12 * static_cast<double>(hn::Lanes(d));
}

}  // namespace HWY_NAMESPACE
}  // namespace pagoda
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <sys/mman.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstring>
#include <exception>
#include <functional>
#include <thread>

#include "cli/bench/dot_product_peak.h"
#include "cli/bench/machine_limits.h"
#include "core/machine.h"
#include "core/start_thread.h"

namespace pagoda {
HWY_EXPORT(read_all);
HWY_EXPORT(read_all_fetching);
HWY_EXPORT(read_all_into_second_level);
HWY_EXPORT(float32_products);

namespace {

// The third-level cache has up to 32 MB per two threads, and more on servers. With 64 MB per
// thread, reads were a tenth faster than reads of a model's weights.
constexpr std::size_t kMostBytesPerThread = std::size_t{256} << 20;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr int kReadRounds = 3;
constexpr int kPeakRounds = 3;
constexpr std::size_t kPeakChainLength = 1'000'000;
constexpr std::size_t kTileChainLength = 100'000;

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Runs work(thread) on all threads at once, `rounds` times. Returns the shortest round's seconds.
double shortest_round(int num_threads, int rounds, const std::function<void(int)>& work) {
  std::barrier<> gate(num_threads);
  double shortest = 1e30;
  const auto body = [&](int thread) {
    for (int round = 0; round < rounds; ++round) {
      gate.arrive_and_wait();
      const double start = now_s();
      work(thread);
      gate.arrive_and_wait();
      if (thread == 0) shortest = std::min(shortest, now_s() - start);
    }
  };
  std::vector<std::thread> threads;
  std::exception_ptr failure;
  try {
    for (int thread = 1; thread < num_threads; ++thread)
      threads.push_back(start_thread([&body, thread] { body(thread); }));
    body(0);
  } catch (const NoThread&) {
    failure = std::current_exception();
    // Threads at the gate must not wait for the threads that could not be started.
    for (auto i = static_cast<int>(threads.size()); i < num_threads; ++i) gate.arrive_and_drop();
  }
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
  return shortest;
}

// Returns the products per second of all threads together, in 10^9.
double peak_gmac(int num_threads, const std::function<double(std::size_t)>& products,
                 std::size_t chain_length = kPeakChainLength) {
  std::vector<double> made(num_threads);
  const double seconds = shortest_round(num_threads, kPeakRounds,
                                        [&](int thread) { made[thread] = products(chain_length); });
  double sum = 0;
  for (const double each : made) sum += each;
  return sum / seconds / 1e9;
}

std::size_t bytes_for_each(int num_threads) {
  const auto left = static_cast<std::size_t>(available_memory_bytes()) / 2;
  const std::size_t fair = left / static_cast<std::size_t>(num_threads) / kHugePage * kHugePage;
  return std::clamp(fair, kHugePage, kMostBytesPerThread);
}

std::optional<double> better(std::optional<double> a, std::optional<double> b) {
  return std::max(a, b);  // an absent figure is the smallest
}

}  // namespace

std::uint64_t read_fetching_ahead(const std::byte* bytes, std::size_t num_bytes) {
  return HWY_DYNAMIC_DISPATCH(read_all_fetching)(reinterpret_cast<const std::uint64_t*>(bytes),
                                                 num_bytes);
}

MachineLimits best_of(const MachineLimits& a, const MachineLimits& b) {
  return {.num_threads = a.num_threads,
          .read_gb_per_s = std::max(a.read_gb_per_s, b.read_gb_per_s),
          .float32_gmac_per_s = std::max(a.float32_gmac_per_s, b.float32_gmac_per_s),
          .bf16_gmac_per_s = better(a.bf16_gmac_per_s, b.bf16_gmac_per_s),
          .int16_gmac_per_s = better(a.int16_gmac_per_s, b.int16_gmac_per_s),
          .int8_gmac_per_s = better(a.int8_gmac_per_s, b.int8_gmac_per_s)};
}

void MachineProbe::Unmap::operator()(void* memory) const {
  munmap(memory, num_bytes);
}

MachineProbe::MachineProbe(int num_threads)
    : num_threads_(num_threads > 0 ? num_threads : default_num_threads()),
      bytes_per_thread_(bytes_for_each(num_threads_)) {
  for (int thread = 0; thread < num_threads_; ++thread) {
    void* memory = mmap(nullptr, bytes_per_thread_, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;  // measure_read_gb_per_s() then returns 0
#ifdef MADV_HUGEPAGE
    madvise(memory, bytes_per_thread_, MADV_HUGEPAGE);
#endif
    std::memset(memory, thread + 1, bytes_per_thread_);
    buffers_.push_back({memory, Unmap{bytes_per_thread_}});
  }
}

MachineProbe::~MachineProbe() = default;

double MachineProbe::measure_read_gb_per_s() const {
  if (static_cast<int>(buffers_.size()) < num_threads_) return 0;
  std::vector<std::uint64_t> sinks(static_cast<std::size_t>(num_threads_) *
                                   8);  // a cache line each
  const auto shortest = [&](auto read) {
    return shortest_round(num_threads_, kReadRounds, [&](int thread) {
      const auto* words = static_cast<const std::uint64_t*>(buffers_[thread].get());
      sinks[static_cast<std::size_t>(thread) * 8] = read(words, bytes_per_thread_);
    });
  };
  const double seconds = std::min({shortest(HWY_DYNAMIC_DISPATCH(read_all)),
                                   shortest(HWY_DYNAMIC_DISPATCH(read_all_fetching)),
                                   shortest(HWY_DYNAMIC_DISPATCH(read_all_into_second_level))});
  return static_cast<double>(num_threads_) * static_cast<double>(bytes_per_thread_) / seconds / 1e9;
}

MachineLimits MachineProbe::measure() const {
  MachineLimits limits = {.num_threads = num_threads_, .read_gb_per_s = measure_read_gb_per_s()};
  limits.float32_gmac_per_s = peak_gmac(num_threads_, [](std::size_t rounds) {
    float sink[3] = {1e-3f, 1e-3f, 0};
    return HWY_DYNAMIC_DISPATCH(float32_products)(rounds, sink);
  });
  if (has_bf16_dot_products()) limits.bf16_gmac_per_s = peak_gmac(num_threads_, bf16_dot_products);
  if (has_integer_dot_products()) {
    limits.int16_gmac_per_s = peak_gmac(num_threads_, int16_dot_products);
    limits.int8_gmac_per_s = peak_gmac(num_threads_, int8_dot_products);
  }
  if (has_tile_products()) {
    limits.bf16_gmac_per_s = better(limits.bf16_gmac_per_s,
                                    peak_gmac(num_threads_, bf16_tile_products, kTileChainLength));
    limits.int8_gmac_per_s = better(limits.int8_gmac_per_s,
                                    peak_gmac(num_threads_, int8_tile_products, kTileChainLength));
  }
  return limits;
}

}  // namespace pagoda
#endif  // HWY_ONCE
