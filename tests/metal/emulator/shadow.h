// The threads that touched a piece of memory: as much of them as tells whether an access races with an
// earlier one.
//
// A key names a thread and one of its segments, the stretch between two calls that its SIMD group
// makes together. Keys grow with time and never start over, so that nothing has to be cleared: what
// is older than the run, or than the threadgroup, is known by its key. Two accesses are ordered
// - within a thread,
// - within a SIMD group, if they are of different segments,
// - within a threadgroup, if a barrier that orders this memory lies between,
// - never between threadgroups.
#pragma once

#include <cstdint>

namespace pagoda::emulator {

// A segment's number, the SIMD group, the lane; and above them what is added to a set of accesses, of
// which only the last one's key is kept.
using AccessKey = std::uint64_t;
inline constexpr AccessKey kManyLanes = AccessKey{1} << 63;         // of this segment
inline constexpr AccessKey kManySimdGroups = AccessKey{1} << 62;    // since the last barrier
inline constexpr AccessKey kManyThreadgroups = AccessKey{1} << 61;  // of this run
inline constexpr AccessKey kAtomic = AccessKey{1} << 60;
inline constexpr AccessKey kKeyMask = kAtomic - 1;

constexpr AccessKey access_key(std::uint64_t segment, std::uint32_t simd_group,
                               std::uint32_t lane) {
  return segment << 10 | AccessKey{simd_group} << 5 | lane;
}
constexpr bool is_same_segment(AccessKey a, AccessKey b) {
  return (a & kKeyMask) >> 5 == (b & kKeyMask) >> 5;
}
constexpr bool is_same_simd_group(AccessKey a, AccessKey b) {
  return ((a ^ b) >> 5 & 31) == 0;
}

// Times that the running thread looks back on, for one kind of memory.
struct AccessTimes {
  AccessKey run = 0;  // the first key of this run; of threadgroup memory: of this threadgroup
  AccessKey threadgroup = 0;  // the first key of this threadgroup
  AccessKey barrier = 0;      // the first key behind the last barrier that orders this memory

  // Returns whether accesses, none of another threadgroup's among them, come ahead of that barrier.
  constexpr bool is_ordered(AccessKey accesses) const {
    return accesses - threadgroup < barrier - threadgroup;
  }
};

enum class Race : std::uint8_t { kNone, kLanes, kSimdGroups, kThreadgroups };

// Returns whether an access races with an earlier one, or a set of them, one of the two writing.
constexpr Race race_with(AccessKey earlier, AccessKey now, const AccessTimes& times) {
  const AccessKey key = earlier & kKeyMask;
  if (key < times.run) return Race::kNone;
  if (key < times.threadgroup || (earlier & kManyThreadgroups) != 0) return Race::kThreadgroups;
  if (key < times.barrier) return Race::kNone;
  if ((earlier & kManySimdGroups) != 0 || !is_same_simd_group(key, now)) return Race::kSimdGroups;
  if (!is_same_segment(key, now)) return Race::kNone;
  return (earlier & kManyLanes) != 0 || key != now ? Race::kLanes : Race::kNone;
}

// Returns a set of accesses with another one, which may be at the same time.
constexpr AccessKey with_access(AccessKey earlier, AccessKey now, const AccessTimes& times) {
  const AccessKey key = earlier & kKeyMask;
  if (key < times.run) return now;
  if (key < times.threadgroup) return now | kManyThreadgroups;
  const AccessKey others = now | (earlier & kManyThreadgroups);
  if (key < times.barrier) return others;
  if ((earlier & kManySimdGroups) != 0 || !is_same_simd_group(key, now))
    return others | kManySimdGroups;
  if (!is_same_segment(key, now)) return others;
  return (earlier & kManyLanes) != 0 || key != now ? others | kManyLanes : others;
}

// A piece of memory: as many bytes as the smallest access that was made to its buffer, at most 4.
struct Granule {
  AccessKey written = 0;
  AccessKey read = 0;
};

}  // namespace pagoda::emulator
