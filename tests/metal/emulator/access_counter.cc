#include "tests/metal/emulator/access_counter.h"

#include <algorithm>

namespace pagoda::emulator {

void AccessCounter::begin(std::size_t num_buffers) {
  counts_.assign(num_buffers, {});
  sites_.clear();
  num_joints_ = 0;
}

void AccessCounter::add(int buffer, const void* place, std::size_t offset, std::size_t bytes,
                        bool stores) {
  BufferCounts& counts = counts_[static_cast<std::size_t>(buffer)];
  (stores ? counts.bytes_stored : counts.bytes_loaded) += bytes;

  Site& site = sites_[place];
  if (site.segment != segment_) {
    site.segment = segment_;
    site.joints.clear();
  }
  if (site.lane != lane_) {
    site.lane = lane_;
    site.num_runs = 0;
  }
  const std::size_t run = site.num_runs++;
  if (run == site.joints.size()) {
    if (num_joints_ == joints_.size()) joints_.emplace_back();
    joints_[num_joints_].stores = stores;
    joints_[num_joints_].lines.clear();
    site.joints.push_back(num_joints_++);
  }
  std::vector<Line>& lines = joints_[site.joints[run]].lines;
  const Line line{buffer, offset / kLineBytes};  // an aligned access is within one line
  if (std::find(lines.rbegin(), lines.rend(), line) == lines.rend()) lines.push_back(line);
}

void AccessCounter::end_segment() {
  for (std::size_t i = 0; i < num_joints_; ++i) {
    for (const Line& line : joints_[i].lines) {
      ++counts_[static_cast<std::size_t>(line.buffer)].lines;
      if (!joints_[i].stores) fetch(line);
    }
  }
  num_joints_ = 0;
  ++segment_;
}

void AccessCounter::fetch(Line line) {
  const auto found = std::find(cache_.begin(), cache_.end(), line);
  if (found != cache_.end()) {
    std::rotate(found, found + 1, cache_.end());
    return;
  }
  counts_[static_cast<std::size_t>(line.buffer)].bytes_fetched += kLineBytes;
  if (cache_.size() == kCacheLines) cache_.erase(cache_.begin());
  cache_.push_back(line);
}

}  // namespace pagoda::emulator
