// AccessCounter: counts what a kernel's accesses ask of device memory.
//
// A SIMD group's lanes make an access together: the same place in the code, as many times run since
// the segment began (machine.h). What they touch together is counted by lines. A buffer begins with
// a line.
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
  // An access of all lanes.
  struct Joint {
    bool stores = false;
    std::vector<Line> lines;
  };
  // A place in the code.
  struct Site {
    std::uint64_t segment = 0;  // the last that came here
    std::uint64_t lane = 0;     // of it, and how often
    std::size_t num_runs = 0;
    std::vector<std::size_t> joints;  // of the segment, by run
  };

  void fetch(Line line);

  std::uint64_t segment_ = 1;
  std::uint64_t lane_ = 0;
  std::unordered_map<const void*, Site> sites_;
  std::vector<Joint> joints_;  // the first num_joints_, in the order of the segment's first lane
  std::size_t num_joints_ = 0;
  std::vector<Line> cache_;  // the line used last comes last
  std::vector<BufferCounts> counts_;
};

}  // namespace pagoda::emulator
