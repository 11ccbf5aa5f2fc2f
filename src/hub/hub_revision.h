// A revision of a model's repository on a hub with Hugging Face's API: one commit and the list of
// its files, with their sizes and digests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "hub/pull_file.h"

namespace pagoda {

struct HubFile {
  std::string path;
  ContentId content;
};

struct HubRevision {
  std::string commit;  // 40 hex digits
  std::vector<HubFile> files;
};

// Returns a + b, which are sizes in bytes, or the largest number if that is more.
inline std::int64_t add_bytes(std::int64_t a, std::int64_t b) {
  return a + std::min(b, std::numeric_limits<std::int64_t>::max() - a);
}

// Reads the hub's answer about a revision. The whole answer is refused if one of its files has
// - a path that would leave its folder, or looks like another path;
// - no size, or a negative one;
// - no valid digest.
Result<HubRevision> parse_hub_revision(std::string_view listing);

}  // namespace pagoda
