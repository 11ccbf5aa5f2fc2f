// The cpu product in float32, with the vectors that the machine has. It multiplies float32 weights
// on every machine, and other weights on machines that have no kernels of their own.
//
// Each output element is one chain acc = x[k] * w[k] + acc over k = 0, 1, ...; a unit of 32 k of a
// panel is decoded into the first-level cache, and multiplied with all rows of a tile.
#include "backend/cpu/panel_format.h"
#include "ops/linear/linear_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/linear/portable/linear_portable.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each target

#include "hwy/highway.h"
#include "ops/linear/unit_decoder-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {

// Returns the most rows for which a panel's sums stay in registers.
int most_portable_rows() {
  return kVectors <= 2 ? 4 : 2;
}

// Adds a unit. values [num_k, 16], x [num_k, kRows].
template <int kRows>
HWY_INLINE void add_unit(const float* values, const float* x, std::int64_t num_k,
                         Vectors (&sums)[kRows]) {
  for (std::int64_t k = 0; k < num_k; ++k, values += kPanelColumns, x += kRows) {
    Vectors w;
    w.load(values);
    PAGODA_UNROLL
    for (int r = 0; r < kRows; ++r) sums[r].add(x[r], w);
  }
}

HWY_INLINE void store_row(const Vectors& sums, const PanelProduct& product, std::int64_t row,
                          std::int64_t panel) {
  const std::int64_t column = panel * kPanelColumns;
  float* out = product.out + row * product.out_stride + column;
  HWY_ALIGN float values[kPanelColumns];
  sums.store(values);
  const std::int64_t left = product.num_columns - column;
  for (std::int64_t i = 0; i < kPanelColumns && i < left; ++i) {
    out[i] = product.bias ? values[i] + product.bias[column + i] : values[i];
  }
}

template <PanelKind kKind, int kRows>
void multiply_tile(const PanelProduct& product, std::int64_t first_row, std::int64_t panel) {
  const auto* x =
      reinterpret_cast<const float*>(product.tiles + first_row / kRows * product.tile_bytes);
  UnitDecoder<kKind> decoder(product, product.panels + panel * product.panel_bytes);
  Vectors sums[kRows];
  PAGODA_UNROLL
  for (int r = 0; r < kRows; ++r) sums[r].clear();
  HWY_ALIGN float memory[kUnit * kPanelColumns];
  for (std::int64_t k = 0; k < product.cols; k += kUnit, x += kUnit * kRows) {
    const std::int64_t left = product.cols - k;
    add_unit<kRows>(decoder.next(memory), x, left < kUnit ? left : kUnit, sums);
  }
  PAGODA_UNROLL
  for (int r = 0; r < kRows; ++r) {
    if (first_row + r < product.num_rows) store_row(sums[r], product, first_row + r, panel);
  }
}

template <PanelKind kKind, int kRows>
void multiply_rows(const PanelProduct& product, std::int64_t begin, std::int64_t end) {
  for (std::int64_t panel = begin; panel < end; ++panel) {
    if (panel * kPanelColumns >= product.num_columns) return;
    for (std::int64_t row = 0; row < product.num_rows; row += kRows) {
      multiply_tile<kKind, kRows>(product, row, panel);
    }
  }
}

template <PanelKind kKind>
void multiply_kind(const PanelProduct& product, std::int64_t begin, std::int64_t end) {
  switch (product.tile_rows) {
    case 1:
      return multiply_rows<kKind, 1>(product, begin, end);
    case 2:
      return multiply_rows<kKind, 2>(product, begin, end);
    default:
      return multiply_rows<kKind, 4>(product, begin, end);
  }
}

void multiply_portable(const PanelProduct& product, std::int64_t begin, std::int64_t end) {
  with_kind(product.kind,
            [&](auto kind) { multiply_kind<decltype(kind)::kValue>(product, begin, end); });
}

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pagoda::cpu {

HWY_EXPORT(most_portable_rows);
HWY_EXPORT(multiply_portable);

namespace {

std::int64_t num_units(std::int64_t cols) {
  return (cols + kUnit - 1) / kUnit;
}

bool layout_of(PanelKind, ActivationLayout& layout) {
  layout = {};
  return true;
}

int most_rows(const ActivationLayout&, std::int64_t) {
  return HWY_DYNAMIC_DISPATCH(most_portable_rows)();
}

std::int64_t tile_bytes(const ActivationLayout&, int tile_rows, std::int64_t cols) {
  return num_units(cols) * kUnit * tile_rows * static_cast<std::int64_t>(sizeof(float));
}

// Packs a tile as [k, tile_rows].
void pack_tile(const ActivationLayout&, const TileSource& source, const TilePart& part,
               std::byte* tile) {
  auto* out = reinterpret_cast<float*>(tile);
  for (int r = 0; r < source.tile_rows; ++r) {
    const float* x = source.row(r);
    for (std::int64_t k = part.begin; k < part.end; ++k) {
      out[k * source.tile_rows + r] = x != nullptr ? x[k] : 0.0f;
    }
  }
}

void multiply(const PanelProduct& product, std::int64_t begin, std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(multiply_portable)(product, begin, end);
}

constexpr LinearKernels kKernels = {.layout_of = layout_of,
                                    .most_rows = most_rows,
                                    .tile_bytes = tile_bytes,
                                    .pack_tile = pack_tile,
                                    .multiply = multiply};

}  // namespace

const LinearKernels* const kPortableKernels = &kKernels;

}  // namespace pagoda::cpu
#endif  // HWY_ONCE
