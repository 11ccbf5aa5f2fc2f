// AccessCounter: counts the lines of device memory that a kernel's accesses touch.
//
// A joint access is the n-th run of one place in the code since the segment began (machine.h), by
// all lanes of a SIMD group. Each line that a joint access touches counts once. A buffer begins at
// the beginning of a line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "tests/metal/emulator/emulator.h"

namespace pagoda::emulator {

class AccessCounter {
 public:
  static constexpr std::size_t kLineBytes = 128;
  static constexpr std::size_t kCacheLines = 64;

  void begin(std::size_t num_buffers);
  void begin_threadgroup() { cache_.clear(); }
  void begin_lane() { ++lane_; }
  void add(int buffer, const void* place, std::size_t offset, std::size_t bytes, bool stores);
  void end_segment();
  const std::vector<BufferCounts>& counts() const { return counts_; }

 private:
  struct Line {
    int buffer;
    std::size_t index;
    bool operator==(const Line&) const = default;
  };
  // A joint access of all lanes.
  struct Joint {
    bool stores = false;
    std::vector<Line> lines;
  };
  // A place in the code.
  struct Site {
    std::uint64_t segment = 0;  // the last segment that ran here
    std::uint64_t lane = 0;     // its last lane here, and how often that lane ran here
    std::size_t num_runs = 0;
    std::vector<std::size_t> joints;  // joint accesses of the segment, by repetition
  };

  void fetch(Line line);

  std::uint64_t segment_ = 1;
  std::uint64_t lane_ = 0;
  std::unordered_map<const void*, Site> sites_;
  std::vector<Joint> joints_;  // num_joints_ are in use, in the order of the segment's first lane
  std::size_t num_joints_ = 0;
  std::vector<Line> cache_;  // least recently used line first
  std::vector<BufferCounts> counts_;
};

}  // namespace pagoda::emulator
