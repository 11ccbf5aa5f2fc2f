// How rows of a checkpoint's matrix become a panel and back (cpu_weight.h draws the layouts).
// Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/weight_format.h"

namespace pagoda::cpu {

struct PanelSource {
  WeightFormat format;
  std::int64_t cols;
  int num_rows;           // 0 to 16
  const std::byte* rows;  // one after the other, as in the file
};
// Writes a whole panel; rows that are missing are zero.
void pack_panel(const PanelSource& source, std::byte* panel);

// Row `column` of the panel's 16: `cols` values.
void unpack_column(WeightFormat format, std::int64_t cols, const std::byte* panel, int column,
                   float* values);

}  // namespace pagoda::cpu
