// How rows of a checkpoint's matrix become a panel and back (panel_format.h draws the layouts).
// Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/panel_format.h"
#include "quant/host_tensor.h"

namespace pagoda::cpu {

// The layout that all panels of one matrix share.
struct PanelLayout {
  PanelKind kind = PanelKind::kF32;
  std::int64_t cols = 0;
  // For affine groups only: the number of units, of kUnit k each, that share a header of 64 bytes.
  int units_of_header = 1;          // a power of two
  bool header_is_bfloat16 = false;  // else float16

  std::int64_t header_area() const;  // bytes before the first group
  std::int64_t panel_bytes() const;  // a multiple of 64
};

// Returns the layout of a matrix's panels. There are no panels of affine groups with float32
// scales: they are decoded to float32.
PanelLayout panel_layout_of(const HostTensor& matrix);

// Writes the panel of rows [first_row, first_row + num_rows), 16 at most. Missing rows are zero.
void pack_panel(const PanelLayout& layout, const HostTensor& matrix, std::int64_t first_row,
                int num_rows, std::byte* panel);

// Decodes one of the panel's 16 rows, `column`: `cols` values, as the format's scalar codec does.
void unpack_column(const PanelLayout& layout, const std::byte* panel, int column, float* values);

}  // namespace pagoda::cpu
