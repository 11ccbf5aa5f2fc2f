// Tracer: checks and counts the accesses of kernels in their traced build.
//
// clang's SanitizerCoverage calls it for each access. It looks up the memory region of the address,
// and the earlier accesses there (shadow.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/metal/emulator/access_counter.h"
#include "tests/metal/emulator/emulator.h"
#include "tests/metal/emulator/shadow.h"

namespace pagoda::emulator {

// Granules. They are zero until they are written, and take no memory until then.
class ShadowMemory {
 public:
  explicit ShadowMemory(std::size_t num_granules);
  ~ShadowMemory();
  ShadowMemory(const ShadowMemory&) = delete;
  ShadowMemory& operator=(const ShadowMemory&) = delete;

  Granule* data() const { return granules_; }
  std::size_t size() const { return num_granules_; }

 private:
  std::size_t num_granules_;
  Granule* granules_;
};

// Memory that a kernel may touch.
struct Region {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
  // ends[n]: accesses of 1 << n bytes fit at offsets below it.
  std::array<std::size_t, 5> ends = {};
  Granule* granules = nullptr;  // null if no thread may write here
  unsigned granule_shift = 2;   // a granule has 1 << granule_shift bytes
  int buffer = -1;
  bool is_fresh = false;  // not to be read before it is written
  const AccessTimes* times = nullptr;
  std::unique_ptr<ShadowMemory> shadow;
  std::string name;

  Region() = default;
  Region(std::string region_name, const void* data, std::size_t size);
};

enum class AccessKind : std::uint8_t { kLoad, kStore, kAtomicLoad, kAtomicStore, kAtomicUpdate };
constexpr bool stores(AccessKind kind) {
  return kind != AccessKind::kLoad && kind != AccessKind::kAtomicLoad;
}

class Tracer {
 public:
  Tracer();
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  // Returns the calling thread's tracer, or null if no kernel of a traced build runs.
  static Tracer* of_this_thread();

  void begin_run(const EmulatedKernel& kernel, const Dispatch& dispatch,
                 const ThreadArguments& arguments, bool counts);
  void end_run();
  void begin_threadgroup();
  void pass_barrier(bool orders_threadgroup_memory, bool orders_device_memory);
  void begin_segment(std::uint32_t simd_group) {
    segment_key_ = access_key(++segment_, simd_group, 0);
  }
  void end_segment() {
    if (counts_) counter_.end_segment();
  }
  void begin_lane(std::uint32_t lane, const std::byte* stack) {
    now_ = segment_key_ | lane;
    stack_ = reinterpret_cast<std::uintptr_t>(stack);
    if (counts_) counter_.begin_lane();
  }
  const std::vector<BufferCounts>& counts() const { return counter_.counts(); }

  // Checks an access of 1 << kLogSize bytes, made at `place` in the code. If it is wrong, fails the
  // run and does not return.
  template <AccessKind kKind, unsigned kLogSize>
  void check(const void* address, const void* place);

 private:
  static constexpr std::size_t kNumSites = 256;

  void add_buffers(const EmulatedKernel& kernel, const Dispatch& dispatch);
  void add_shadow(Region& region, unsigned granule_shift);
  void refine(Region& region, unsigned granule_shift);
  Region* find(std::uintptr_t address);
  void find_constants();
  AccessKey next_key() const { return access_key(segment_ + 1, 0, 0); }
  // Records a load or a store if it cannot be wrong, as nearly always. Returns whether it did.
  template <AccessKind kKind>
  bool note_ordered(Granule& granule, const AccessTimes& times) const;
  template <AccessKind kKind>
  void check_granule(Granule& granule, const Region& region, std::uintptr_t address,
                     std::size_t bytes, const void* place);
  // Tells the machine what is wrong with an access.
  void note_error(AccessKind kind, std::uintptr_t address, std::size_t bytes,
                  const std::string& what, const void* place);
  void note_outside(AccessKind kind, std::uintptr_t address, std::size_t bytes, const void* place);
  void note_race(AccessKind kind, std::uintptr_t address, std::size_t bytes, bool earlier_wrote,
                 AccessKey earlier, Race race, const void* place);
  // Tells the machine what is wrong with an access, and ends the run.
  [[noreturn]] void fail(AccessKind kind, std::uintptr_t address, std::size_t bytes,
                         const char* what, const void* place);
  [[noreturn]] void fail_outside(AccessKind kind, std::uintptr_t address, std::size_t bytes,
                                 const void* place);
  [[noreturn]] void fail_race(AccessKind kind, std::uintptr_t address, std::size_t bytes,
                              bool earlier_wrote, AccessKey earlier, Race race, const void* place);

  AccessKey now_ = 0;
  std::uintptr_t stack_ = 0;
  bool counts_ = false;
  std::array<Region*, kNumSites> sites_;  // per place in the code: the region of its last access
  AccessTimes device_times_;
  AccessTimes threadgroup_times_;
  AccessKey segment_key_ = 0;
  std::uint64_t segment_ = 1;
  AccessCounter counter_;
  Region nowhere_;
  std::vector<Region> regions_;                               // writable buffers first
  std::vector<std::unique_ptr<ShadowMemory>> spare_shadows_;  // left by earlier runs
  std::vector<Region> constants_;                             // read-only memory of the program
};

}  // namespace pagoda::emulator
