// The threads that accessed a piece of memory, with enough detail to tell whether an access races
// with an earlier one.
//
// A key names a thread and one of its segments, the code between two calls that its SIMD group
// makes together. Keys grow with time and never restart, so nothing has to be cleared: an access
// before the run, or before the threadgroup, has a smaller key. Two accesses are ordered
// - within a thread,
// - within a SIMD group, if they are of different segments,
// - within a threadgroup, if a barrier that orders this memory is between them,
// - never between threadgroups.
#pragma once

#include <cstdint>

namespace pagoda::emulator {

// A segment's number, the SIMD group and the lane; the flags below are in the upper bits. A set of
// accesses is stored as the key of its last access and these flags.
using AccessKey = std::uint64_t;
inline constexpr AccessKey kManyLanes = AccessKey{1} << 63;         // in this segment
inline constexpr AccessKey kManySimdGroups = AccessKey{1} << 62;    // since the last barrier
inline constexpr AccessKey kManyThreadgroups = AccessKey{1} << 61;  // in this run
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

// The times with which the running thread compares earlier accesses to one kind of memory.
struct AccessTimes {
  AccessKey run = 0;  // the first key of this run; for threadgroup memory, of this threadgroup
  AccessKey threadgroup = 0;  // the first key of this threadgroup
  AccessKey barrier = 0;      // the first key after the last barrier that orders this memory

  // Returns whether all of the accesses are of this threadgroup, and before that barrier.
  constexpr bool is_ordered(AccessKey accesses) const {
    return accesses - threadgroup < barrier - threadgroup;
  }
};

enum class Race : std::uint8_t { kNone, kLanes, kSimdGroups, kThreadgroups };

// Returns how the access `now` races with an earlier one, or a set of earlier ones. The caller has
// checked that `now` or the earlier ones write.
constexpr Race race_with(AccessKey earlier, AccessKey now, const AccessTimes& times) {
  const AccessKey key = earlier & kKeyMask;
  if (key < times.run) return Race::kNone;
  if (key < times.threadgroup || (earlier & kManyThreadgroups) != 0) return Race::kThreadgroups;
  if (key < times.barrier) return Race::kNone;
  if ((earlier & kManySimdGroups) != 0 || !is_same_simd_group(key, now)) return Race::kSimdGroups;
  if (!is_same_segment(key, now)) return Race::kNone;
  return (earlier & kManyLanes) != 0 || key != now ? Race::kLanes : Race::kNone;
}

// Returns a set of accesses with `now` added, which may be concurrent with them.
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

// The accesses to a piece of memory. The piece is as large as the smallest access to its buffer so
// far, at most 4 bytes.
struct Granule {
  AccessKey written = 0;
  AccessKey read = 0;
};

}  // namespace pagoda::emulator
