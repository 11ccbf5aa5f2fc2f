// The cpu product's kernels, for each target (linear_cpu.cc says what they keep to).
#if defined(PAGODA_LINEAR_KERNEL_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef PAGODA_LINEAR_KERNEL_INL_H
#undef PAGODA_LINEAR_KERNEL_INL_H
#else
#define PAGODA_LINEAR_KERNEL_INL_H
#endif

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "ops/linear/linear_cpu.h"
#include "ops/linear/panel_reader-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {

// Up to so many rows decode panels as they go; more share panels that were decoded into memory
// first.
constexpr int kFewRows = kVectors == 1 ? 24 : 6;
// Rows of a block, at most, in either case: as many as leave the sums over panels_together() panels
// in registers, 32 where a vector holds a panel's columns and 16 elsewhere. Measured on a Zen 5: 8
// and 12 rows over two panels.
constexpr int kMostOfFew = kVectors == 1 ? 8 : 6;
constexpr int kMostOfMany = kVectors == 1 ? 12 : 6;
// Panels that share the loading of x and, with few rows, hide the latency of a fused multiply-add:
// eight sums or more.
constexpr int panels_together(int rows) {
  if (kVectors == 1) return rows <= 4 ? 4 : 2;
  return kVectors == 2 && rows == 1 ? 2 : 1;
}
static_assert(panels_together(kMostOfMany) <= kMostPanelsDecoded);

// Rows in the block that begins at `row`: the most, or the power of two that holds the rest.
HWY_INLINE int block_rows(std::int64_t num_rows, std::int64_t row) {
  const int most = num_rows <= kFewRows ? kMostOfFew : kMostOfMany;
  int rows = 1;
  while (rows < num_rows - row && rows < most) rows *= 2;
  return rows < most ? rows : most;
}

// Calls visit(row, rows) with every block of rows, `rows` a compile-time number of kMost at most.
template <int kMost, class Visit>
HWY_INLINE void for_each_block(std::int64_t num_rows, Visit&& visit) {
  for (std::int64_t row = 0; row < num_rows;) {
    const int rows = block_rows(num_rows, row);
    if (rows == kMost) {
      visit(row, std::integral_constant<int, kMost>());
    } else if (rows == 1) {
      visit(row, std::integral_constant<int, 1>());
    } else if (rows == 2) {
      visit(row, std::integral_constant<int, 2>());
    } else if (rows == 4) {
      visit(row, std::integral_constant<int, 4>());
    } else if constexpr (kMost > 8) {
      visit(row, std::integral_constant<int, 8>());
    }
    row += rows;
  }
}

HWY_INLINE void store_columns(const Vectors& sums, const SegmentProduct& product, std::int64_t row,
                              std::int64_t panel) {
  const std::int64_t column = panel * kPanelColumns;
  float* out = product.out + row * product.out_stride + column;
  const float* bias = product.bias ? product.bias + column : nullptr;
  const std::int64_t count = product.num_columns - column;
  HWY_ALIGN float values[kPanelColumns];
  float* to = count < kPanelColumns ? values : out;
  for (int v = 0; v < kVectors; ++v) hn::StoreU(sums.v[v], D(), to + v * kLanes);
  const std::int64_t n = count < kPanelColumns ? count : kPanelColumns;  // below 1: no row is there
  if (to == values) {
    for (std::int64_t i = 0; i < n; ++i) out[i] = values[i];
  }
  if (bias) {
    for (std::int64_t i = 0; i < n; ++i) out[i] += bias[i];
  }
}

// Those rows of the block that exist.
template <int kRows, int kPanels>
HWY_INLINE void store_block(const Vectors (&sums)[kPanels][kRows], const SegmentProduct& product,
                            std::int64_t row, std::int64_t panel) {
  PAGODA_UNROLL
  for (int p = 0; p < kPanels; ++p) {
    PAGODA_UNROLL
    for (int r = 0; r < kRows; ++r) {
      if (row + r < product.num_rows) store_columns(sums[p][r], product, row + r, panel + p);
    }
  }
}

// A panel is too short for the hardware to foresee the next: without asking for it, a decode that
// streams its weights from memory takes three times as long.
template <int kBytes>
HWY_INLINE void prefetch(const std::byte* block) {
  PAGODA_UNROLL
  for (int line = 0; line < kBytes; line += 64) hwy::Prefetch(block + line);
}

// A block of rows times panels that are decoded on the way.
template <WeightFormat kFormat, int kRows, int kPanels>
HWY_INLINE void block_times_packed(const SegmentProduct& product, std::int64_t row,
                                   std::int64_t panel) {
  using Reader = PanelReader<kFormat>;
  Reader readers[kPanels];
  Vectors sums[kPanels][kRows];
  PAGODA_UNROLL
  for (int p = 0; p < kPanels; ++p) {
    PAGODA_UNROLL
    for (int r = 0; r < kRows; ++r) sums[p][r].clear();
  }
  const std::byte* base = product.panels + panel * product.panel_bytes;
  const float* x = product.interleaved + row * product.cols;  // [cols, kRows]
  for (std::int64_t b = 0; b < product.cols / Reader::kBlock; ++b) {
    PAGODA_UNROLL
    for (int p = 0; p < kPanels; ++p) {
      const std::byte* block = base + p * product.panel_bytes + b * Reader::kBlockBytes;
      readers[p].load(block);
      prefetch<Reader::kBlockBytes>(block + kPanels * product.panel_bytes);
    }
    for (int i = 0; i < Reader::kBlock; i += Reader::kStep, x += Reader::kStep * kRows) {
      PAGODA_UNROLL
      for (int p = 0; p < kPanels; ++p) {
        Vectors w[Reader::kStep];
        readers[p].read(i, w);
        PAGODA_UNROLL
        for (int s = 0; s < Reader::kStep; ++s) {
          PAGODA_UNROLL
          for (int r = 0; r < kRows; ++r) sums[p][r].add(x[s * kRows + r], w[s]);
        }
      }
    }
  }
  store_block<kRows, kPanels>(sums, product, row, panel);
}

template <WeightFormat kFormat>
void few_rows_times(const SegmentProduct& product, std::int64_t begin, std::int64_t end) {
  // Every block of rows passes a group of panels while that is in the cache.
  for (std::int64_t group = begin; group < end; group += kPanelGroup) {
    for_each_block<kMostOfFew>(product.num_rows, [&](std::int64_t row, auto rows) {
      constexpr int kPanels = panels_together(rows);
      static_assert(kPanelGroup % kPanels == 0);
      for (std::int64_t panel = group; panel < group + kPanelGroup; panel += kPanels) {
        block_times_packed<kFormat, rows, kPanels>(product, row, panel);
      }
    });
  }
}

// values  [cols, 16]
template <WeightFormat kFormat>
void decode_panel(const std::byte* panel, std::int64_t cols, float* values) {
  using Reader = PanelReader<kFormat>;
  for (std::int64_t k = 0; k < cols; k += Reader::kBlock, panel += Reader::kBlockBytes) {
    Reader reader;
    reader.load(panel);
    prefetch<Reader::kBlockBytes>(panel + cols / Reader::kBlock * Reader::kBlockBytes);
    for (int i = 0; i < Reader::kBlock; i += Reader::kStep) {
      Vectors w[Reader::kStep];
      reader.read(i, w);
      PAGODA_UNROLL
      for (int s = 0; s < Reader::kStep; ++s, values += kPanelColumns) w[s].store(values);
    }
  }
}

// A block of rows times panels decoded before: values  [kPanels][cols, 16].
template <int kRows, int kPanels>
HWY_NOINLINE void block_times_values(const SegmentProduct& product, const float* values,
                                     std::int64_t row, std::int64_t panel) {
  Vectors sums[kPanels][kRows];
  PAGODA_UNROLL
  for (int p = 0; p < kPanels; ++p) {
    PAGODA_UNROLL
    for (int r = 0; r < kRows; ++r) sums[p][r].clear();
  }
  const float* x = product.interleaved + row * product.cols;  // [cols, kRows]
  for (std::int64_t k = 0; k < product.cols; ++k, x += kRows, values += kPanelColumns) {
    Vectors w[kPanels];
    PAGODA_UNROLL
    for (int p = 0; p < kPanels; ++p) w[p].load(values + p * product.cols * kPanelColumns);
    PAGODA_UNROLL
    for (int r = 0; r < kRows; ++r) {
      PAGODA_UNROLL
      for (int p = 0; p < kPanels; ++p) sums[p][r].add(x[r], w[p]);
    }
  }
  store_block<kRows, kPanels>(sums, product, row, panel);
}

template <WeightFormat kFormat>
void many_rows_times(const SegmentProduct& product, std::int64_t begin, std::int64_t end,
                     float* values) {
  constexpr int kPanels = panels_together(kMostOfMany);
  for (std::int64_t panel = begin; panel < end; panel += kPanels) {
    for (int p = 0; p < kPanels; ++p) {
      decode_panel<kFormat>(product.panels + (panel + p) * product.panel_bytes, product.cols,
                            values + p * product.cols * kPanelColumns);
    }
    for_each_block<kMostOfMany>(product.num_rows, [&](std::int64_t row, auto rows) {
      block_times_values<rows, kPanels>(product, values, row, panel);
    });
  }
}

template <WeightFormat kFormat>
void times_panels(const SegmentProduct& product, std::int64_t begin, std::int64_t end,
                  float* values) {
  if (product.num_rows <= kFewRows) return few_rows_times<kFormat>(product, begin, end);
  many_rows_times<kFormat>(product, begin, end, values);
}

// One block of rows of x as [cols, rows of the block], rows that are missing zero.
inline void interleave_rows(const SegmentProduct& product, std::int64_t row, int rows, float* out) {
  for (int r = 0; r < rows; ++r) {
    const float* x = product.x + (row + r) * product.x_stride;
    const bool exists = row + r < product.num_rows;
    for (std::int64_t k = 0; k < product.cols; ++k) out[k * rows + r] = exists ? x[k] : 0.0f;
  }
}

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the target's pass
