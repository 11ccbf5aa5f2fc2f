// The parsed JSON header of a safetensors file. Nothing here checks it against the data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace pagoda {

struct SafetensorsHeaderEntry {
  std::string name;
  std::string dtype;
  std::vector<std::uint64_t> shape;
  std::vector<std::uint64_t> data_offsets;  // begin and end
};

// Parses a header. Every entry has a name, a dtype, at most 8 extents and exactly two offsets.
// kDataLoss otherwise.
Result<std::vector<SafetensorsHeaderEntry>> parse_safetensors_header(std::string_view json);

}  // namespace pagoda
