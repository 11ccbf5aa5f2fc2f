// longest_hit(): the longest prefix of a sequence that all cache groups have.
//
// A group has a prefix if it has the blocks that a query at the prefix's end sees. A group that
// sees all needs every block of the prefix. A group with a window needs only enough blocks in a row
// at its end. (The search from the end: vLLM's sliding window manager.)
#pragma once

#include "kv/cache_groups.h"

namespace pagoda {

// Returns the number of blocks in a group's longest prefix of up to num_blocks. has(group, index):
// whether the group has that block.
template <typename Has>
int longest_hit(const CacheGroups& groups, int group, int num_blocks, const Has& has) {
  if (groups.sees_all(group)) {
    int length = 0;
    while (length < num_blocks && has(group, length)) ++length;
    return length;
  }
  int begin = num_blocks, end = num_blocks;  // the blocks in [begin, end) are there
  while (begin > groups.first_seen(group, end * groups.block_size())) {
    --begin;
    if (!has(group, begin)) end = begin;
  }
  return end;
}

// Returns the number of blocks in the longest prefix of up to num_blocks that all groups have. If
// one group shortens the prefix, all others are asked again.
template <typename Has>
int longest_hit(const CacheGroups& groups, int num_blocks, const Has& has) {
  int length = num_blocks;
  for (int group = 0, num_agreed = 0; num_agreed < groups.size();
       group = (group + 1) % groups.size()) {
    const int hit = longest_hit(groups, group, length, has);
    num_agreed = hit == length ? num_agreed + 1 : 1;
    length = hit;
  }
  return length;
}

}  // namespace pagoda
