#include "kv/cache_groups.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/check.h"

namespace pagoda {

CacheGroups::CacheGroups(int block_size, std::vector<int> windows)
    : block_size_(block_size), windows_(std::move(windows)) {
  const bool has_windows =
      std::all_of(windows_.begin(), windows_.end(), [](int window) { return window >= 0; });
  PAGODA_CHECK(block_size > 0 && !windows_.empty() && has_windows,
               "[cache_groups] expected blocks of a token at least, and windows of 0 or more");
}

// Returns the most blocks that the positions seen by num_new queries can touch.
int CacheGroups::most_held(int group, int num_blocks, int num_new) const {
  if (sees_all(group)) return num_blocks;
  const std::int64_t num_seen = std::int64_t{windows_[group]} - 1 + num_new;
  const std::int64_t most = (num_seen + block_size_ - 2) / block_size_ + 1;
  return static_cast<int>(std::min<std::int64_t>(num_blocks, most));
}

int CacheGroups::most_held(int num_tokens) const {
  std::int64_t num_blocks = 0;
  for (int group = 0; group < size(); ++group)
    num_blocks += most_held(group, blocks_for(num_tokens), /*num_new=*/1);
  return static_cast<int>(std::min<std::int64_t>(num_blocks, INT32_MAX));
}

}  // namespace pagoda
