#include "tests/metal/emulator/tracer.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "tests/metal/emulator/machine.h"

namespace pagoda::emulator {
namespace {

constinit thread_local Tracer* running = nullptr;

}  // namespace

ShadowMemory::ShadowMemory(std::size_t num_granules) : num_granules_(num_granules) {
  void* const memory = mmap(nullptr, num_granules * sizeof(Granule), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("[emulator] mmap");
    std::abort();
  }
  granules_ = static_cast<Granule*>(memory);
}

ShadowMemory::~ShadowMemory() {
  munmap(granules_, num_granules_ * sizeof(Granule));
}

Region::Region(std::string region_name, const void* data, std::size_t size)
    : begin(reinterpret_cast<std::uintptr_t>(data)), bytes(size), name(std::move(region_name)) {
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const std::size_t access = std::size_t{1} << i;
    ends[i] = size >= access ? size - access + 1 : 0;
  }
}

Tracer::Tracer() {
  find_constants();
}

Tracer* Tracer::of_this_thread() {
  return running;
}

// Collects the read-only segments of the program and its libraries.
void Tracer::find_constants() {
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* constants) {
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& segment = info->dlpi_phdr[i];
          if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
          static_cast<std::vector<Region>*>(constants)->emplace_back(
              "constants", reinterpret_cast<const void*>(info->dlpi_addr + segment.p_vaddr),
              segment.p_memsz);
        }
        return 0;
      },
      &constants_);
}

void Tracer::begin_run(const EmulatedKernel& kernel, const Dispatch& dispatch,
                       const ThreadArguments& arguments, bool counts) {
  running = this;
  counts_ = counts;
  counter_.begin(dispatch.buffers.size());
  sites_.fill(&nowhere_);
  device_times_ = {.run = next_key()};
  regions_.clear();
  regions_.reserve(dispatch.buffers.size() + 2);
  add_buffers(kernel, dispatch);
  regions_.emplace_back("the parameters", arguments.parameters, dispatch.parameters.size());
  Region& shared = regions_.emplace_back("threadgroup memory", arguments.shared,
                                         static_cast<std::size_t>(dispatch.threadgroup_bytes));
  shared.times = &threadgroup_times_;
  shared.is_fresh = true;
  add_shadow(shared, 2);
}

// Adds writable buffers first. So if memory is bound twice, a search finds the writable buffer.
void Tracer::add_buffers(const EmulatedKernel& kernel, const Dispatch& dispatch) {
  for (const bool is_const : {false, true}) {
    for (std::size_t i = 0; i < dispatch.buffers.size(); ++i) {
      const BufferType& type = kernel.signature.buffers[i];
      if (type.is_const != is_const) continue;
      const BufferBinding& binding = dispatch.buffers[i];
      Region& region =
          regions_.emplace_back("buffer " + std::to_string(i), binding.data, binding.bytes);
      region.buffer = static_cast<int>(i);
      region.is_fresh = binding.is_fresh;
      region.times = &device_times_;
      if (!is_const)
        add_shadow(region, static_cast<unsigned>(
                               std::countr_zero(std::min<std::size_t>(type.element_size, 4))));
    }
  }
}

void Tracer::add_shadow(Region& region, unsigned granule_shift) {
  const std::size_t num_granules = (region.bytes >> granule_shift) + 1;
  const auto spare = std::find_if(spare_shadows_.begin(), spare_shadows_.end(),
                                  [&](const auto& s) { return s->size() >= num_granules; });
  if (spare != spare_shadows_.end()) {
    region.shadow = std::move(*spare);
    spare_shadows_.erase(spare);
  } else {
    region.shadow = std::make_unique<ShadowMemory>(num_granules);
  }
  region.granules = region.shadow->data();
  region.granule_shift = granule_shift;
}

// Splits the granules into smaller ones.
void Tracer::refine(Region& region, unsigned granule_shift) {
  const std::unique_ptr<ShadowMemory> old = std::move(region.shadow);
  const unsigned by = region.granule_shift - granule_shift;
  const std::size_t num_old = (region.bytes >> region.granule_shift) + 1;
  add_shadow(region, granule_shift);
  const std::size_t num_new = (region.bytes >> granule_shift) + 1;
  for (std::size_t i = 0; i < num_old << by && i < num_new; ++i) {
    const Granule& from = old->data()[i >> by];
    // Granules of earlier runs are not copied, because writing them would only cost memory.
    const bool is_known = ((from.written | from.read) & kKeyMask) >= region.times->run;
    if (is_known || region.granules[i].written != 0 || region.granules[i].read != 0)
      region.granules[i] = from;
  }
}

void Tracer::end_run() {
  running = nullptr;
  for (Region& region : regions_)
    if (region.shadow != nullptr) spare_shadows_.push_back(std::move(region.shadow));
  std::sort(spare_shadows_.begin(), spare_shadows_.end(),
            [](const auto& a, const auto& b) { return a->size() < b->size(); });
  constexpr std::size_t kMaxSpares = 8;
  if (spare_shadows_.size() > kMaxSpares)
    spare_shadows_.erase(spare_shadows_.begin(), spare_shadows_.end() - kMaxSpares);
}

void Tracer::begin_threadgroup() {
  const AccessKey key = next_key();
  device_times_.threadgroup = device_times_.barrier = key;
  threadgroup_times_ = {key, key, key};
  counter_.begin_threadgroup();
}

void Tracer::pass_barrier(bool orders_threadgroup_memory, bool orders_device_memory) {
  if (orders_threadgroup_memory) threadgroup_times_.barrier = next_key();
  if (orders_device_memory) device_times_.barrier = next_key();
}

// Returns the region of an address, or the empty region `nowhere_`.
Region* Tracer::find(std::uintptr_t address) {
  for (std::vector<Region>* const regions : {&regions_, &constants_})
    for (Region& region : *regions)
      if (address - region.begin < region.bytes) return &region;
  return &nowhere_;
}

void Tracer::fail(AccessKind kind, std::uintptr_t address, std::size_t bytes, const char* what,
                  const void* place) {
  note_error(kind, address, bytes, what, place);
  Machine::running().stop();
}

void Tracer::fail_outside(AccessKind kind, std::uintptr_t address, std::size_t bytes,
                          const void* place) {
  note_outside(kind, address, bytes, place);
  Machine::running().stop();
}

void Tracer::fail_race(AccessKind kind, std::uintptr_t address, std::size_t bytes,
                       bool earlier_wrote, AccessKey earlier, Race race, const void* place) {
  note_race(kind, address, bytes, earlier_wrote, earlier, race, place);
  Machine::running().stop();
}

template <AccessKind kKind>
inline bool Tracer::note_ordered(Granule& granule, const AccessTimes& times) const {
  const AccessKey written = granule.written, read = granule.read;
  if constexpr (kKind == AccessKind::kLoad) {
    if (!times.is_ordered(written)) return false;
    if (times.is_ordered(read))
      granule.read = now_;
    else if (!is_same_segment(read, now_))
      return false;
    else if (read != now_)
      granule.read = read | kManyLanes;
    return true;
  } else if constexpr (kKind == AccessKind::kStore) {
    if (!times.is_ordered(written) && written >= times.run) return false;
    if (!times.is_ordered(read) && read >= times.run) return false;
    granule = {.written = now_, .read = 0};
    return true;
  } else {
    return false;
  }
}

template <AccessKind kKind>
[[gnu::noinline]] void Tracer::check_granule(Granule& granule, const Region& region,
                                             std::uintptr_t address, std::size_t bytes,
                                             const void* place) {
  constexpr bool kIsAtomic = kKind != AccessKind::kLoad && kKind != AccessKind::kStore;
  const AccessTimes& times = *region.times;
  const AccessKey written = granule.written;
  if constexpr (kKind != AccessKind::kStore && kKind != AccessKind::kAtomicStore) {
    if ((written & kKeyMask) < times.run && region.is_fresh)
      fail(kKind, address, bytes, "that nobody has written", place);
  }
  const bool both_atomic = kIsAtomic && (written & kAtomic) != 0;
  if (!both_atomic) {
    if (const Race race = race_with(written, now_, times); race != Race::kNone)
      fail_race(kKind, address, bytes, true, written, race, place);
  }
  if constexpr (kKind == AccessKind::kLoad) {
    granule.read = with_access(granule.read, now_, times);
  } else {
    if (const Race race = race_with(granule.read, now_, times); race != Race::kNone)
      fail_race(kKind, address, bytes, false, granule.read, race, place);
    granule.written = !kIsAtomic    ? now_
                      : both_atomic ? with_access(written, now_, times) | kAtomic
                                    : now_ | kAtomic;
    granule.read = 0;
  }
}

template <AccessKind kKind, unsigned kLogSize>
inline void Tracer::check(const void* address, const void* place) {
  constexpr std::size_t kBytes = std::size_t{1} << kLogSize;
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  if (begin - stack_ < kStackBytes) return;
  Region*& site = sites_[(reinterpret_cast<std::uintptr_t>(place) >> 2) % kNumSites];
  if (begin - site->begin >= site->ends[kLogSize]) {
    site = find(begin);
    if (begin - site->begin >= site->ends[kLogSize]) fail_outside(kKind, begin, kBytes, place);
  }
  Region& region = *site;
  const std::size_t offset = begin - region.begin;
  if (begin % kBytes != 0) fail(kKind, begin, kBytes, "that are not aligned", place);
  if (region.granules == nullptr) {
    if constexpr (stores(kKind)) fail(kKind, begin, kBytes, "that are only read", place);
    if (region.is_fresh) fail(kKind, begin, kBytes, "that nobody has written", place);
  } else {
    if (kLogSize < region.granule_shift) refine(region, kLogSize);
    const std::size_t first = offset >> region.granule_shift;
    const std::size_t count = kBytes >> region.granule_shift;
    for (std::size_t i = 0; i < count; ++i)
      if (!note_ordered<kKind>(region.granules[first + i], *region.times))
        check_granule<kKind>(region.granules[first + i], region, begin, kBytes, place);
  }
  if (counts_ && region.buffer >= 0)
    counter_.add(region.buffer, place, offset, kBytes, stores(kKind));
}

template void Tracer::check<AccessKind::kAtomicLoad, 2>(const void*, const void*);
template void Tracer::check<AccessKind::kAtomicStore, 2>(const void*, const void*);
template void Tracer::check<AccessKind::kAtomicUpdate, 2>(const void*, const void*);

namespace {

std::string offset_in(const Region& region, std::uintptr_t address) {
  const auto offset = static_cast<std::int64_t>(address - region.begin);
  return "byte " + std::to_string(offset) + " of " + region.name + ", " +
         std::to_string(region.bytes) + " bytes long";
}

std::string verb(AccessKind kind, std::size_t bytes) {
  const char* const verbs[] = {"reads ", "writes ", "atomically reads ", "atomically writes ",
                               "atomically updates "};
  return verbs[static_cast<int>(kind)] + std::to_string(bytes) + " bytes ";
}

// Returns the place in the code as arguments for addr2line.
std::string place_in_file(const void* place) {
  Dl_info info;
  char text[32] = "";
  if (dladdr(place, &info) == 0) return text;
  std::snprintf(text, sizeof(text), " %#zx",
                static_cast<std::size_t>(static_cast<const char*>(place) -
                                         static_cast<const char*>(info.dli_fbase) - 1));
  return " (addr2line -e " + std::string(info.dli_fname) + text + ")";
}

}  // namespace

void Tracer::note_error(AccessKind kind, std::uintptr_t address, std::size_t bytes,
                        const std::string& what, const void* place) {
  Machine::running().note_error(verb(kind, bytes) + what + ": " +
                                offset_in(*find(address), address) + place_in_file(place));
}

void Tracer::note_outside(AccessKind kind, std::uintptr_t address, std::size_t bytes,
                          const void* place) {
  const auto distance = [&](const Region& region) {
    return std::min(address - region.begin, region.begin - address);
  };
  const Region& nearest = *std::min_element(
      regions_.begin(), regions_.end(),
      [&](const Region& a, const Region& b) { return distance(a) < distance(b); });
  Machine::running().note_error(verb(kind, bytes) + "outside of what is bound; nearest: " +
                                offset_in(nearest, address) + place_in_file(place));
}

void Tracer::note_race(AccessKind kind, std::uintptr_t address, std::size_t bytes,
                       bool earlier_wrote, AccessKey earlier, Race race, const void* place) {
  const std::string other = race == Race::kThreadgroups ? "another threadgroup"
                            : race == Race::kSimdGroups
                                ? "SIMD group " + std::to_string(earlier >> 5 & 31)
                                : "lane " + std::to_string(earlier & 31);
  const char* const between = race == Race::kThreadgroups ? " in this dispatch"
                              : race == Race::kSimdGroups ? " with no barrier between"
                                                          : " with nothing between";
  note_error(kind, address, bytes,
             "that " + other + (earlier_wrote ? " has written" : " has read") + between, place);
}

}  // namespace pagoda::emulator

// Functions that clang calls before each access, also before those of registrations.
#define PAGODA_TRACE(NAME, KIND, LOG_SIZE)                                              \
  extern "C" void __sanitizer_cov_##NAME(void* address);                                \
  void __sanitizer_cov_##NAME(void* address) {                                          \
    using namespace pagoda::emulator; /* NOLINT(google-build-using-namespace) */        \
    if (running != nullptr)                                                             \
      running->check<AccessKind::KIND, LOG_SIZE>(address, __builtin_return_address(0)); \
  }
PAGODA_TRACE(load1, kLoad, 0)
PAGODA_TRACE(load2, kLoad, 1)
PAGODA_TRACE(load4, kLoad, 2)
PAGODA_TRACE(load8, kLoad, 3)
PAGODA_TRACE(load16, kLoad, 4)
PAGODA_TRACE(store1, kStore, 0)
PAGODA_TRACE(store2, kStore, 1)
PAGODA_TRACE(store4, kStore, 2)
PAGODA_TRACE(store8, kStore, 3)
PAGODA_TRACE(store16, kStore, 4)
