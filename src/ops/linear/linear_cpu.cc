// The cpu product: panels of 16 output columns across the lanes, k in order.
//
// Each output element is one chain acc = x[k] * w[k] + acc over k = 0, 1, ..., whatever the number
// of rows, so that one row decodes a panel's values in registers, while several rows decode them
// once into a buffer and share them, and both give the same bits. Sums are never split over
// threads: those share out panels.
#include "ops/linear/linear.h"

#include "ops/linear/linear_cpu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/linear/linear_cpu.cc"
#include "hwy/foreach_target.h"  // compiles this file once a target

#include "hwy/highway.h"
#include "ops/linear/panel_reader-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {

// Sums of one row over kPanels panels at a time: several chains hide the latency of a fused
// multiply-add.
constexpr int kPanelsPerRow = kVectors >= 4 ? 1 : 4 / kVectors;
// Rows whose sums stay in registers together.
constexpr int kRowsPerBlock = kVectors == 1 ? 12 : 6;
constexpr int kFewRows = kVectors == 1 ? 4 : 2;

HWY_INLINE void store_columns(const Vectors& sums, const SegmentProduct& product, std::int64_t row,
                              std::int64_t panel) {
  const std::int64_t column = panel * kPanelColumns;
  float* out = product.out + row * product.out_stride + column;
  const float* bias = product.bias ? product.bias + column : nullptr;
  const std::int64_t count = product.num_columns - column;
  HWY_ALIGN float values[kPanelColumns];
  float* to = count < kPanelColumns ? values : out;
  for (int v = 0; v < kVectors; ++v) hn::StoreU(sums.v[v], D(), to + v * kLanes);
  const std::int64_t n = count < kPanelColumns ? count : kPanelColumns;
  if (to == values) {
    for (std::int64_t i = 0; i < n; ++i) out[i] = values[i];
  }
  if (bias) {
    for (std::int64_t i = 0; i < n; ++i) out[i] += bias[i];
  }
}

template <WeightFormat kFormat, int kPanels>
HWY_INLINE void row_times_panels(const SegmentProduct& product, std::int64_t panel) {
  using Reader = PanelReader<kFormat>;
  Reader readers[kPanels];
  Vectors sums[kPanels];
  const std::byte* base = product.panels + panel * product.panel_bytes;
  PAGODA_UNROLL
  for (int p = 0; p < kPanels; ++p) sums[p].clear();
  const std::int64_t num_blocks = product.cols / Reader::kBlock;
  const float* x = product.x;
  for (std::int64_t b = 0; b < num_blocks; ++b) {
    PAGODA_UNROLL
    for (int p = 0; p < kPanels; ++p) {
      readers[p].load(base + p * product.panel_bytes + b * Reader::kBlockBytes);
    }
    for (int i = 0; i < Reader::kBlock; i += Reader::kStep, x += Reader::kStep) {
      PAGODA_UNROLL
      for (int p = 0; p < kPanels; ++p) {
        Vectors w[Reader::kStep];
        readers[p].read(i, w);
        PAGODA_UNROLL
        for (int s = 0; s < Reader::kStep; ++s) sums[p].add(x[s], w[s]);
      }
    }
  }
  for (int p = 0; p < kPanels; ++p) store_columns(sums[p], product, 0, panel + p);
}

template <WeightFormat kFormat>
void row_times(const SegmentProduct& product, std::int64_t begin, std::int64_t end) {
  std::int64_t panel = begin;
  for (; panel + kPanelsPerRow <= end; panel += kPanelsPerRow) {
    row_times_panels<kFormat, kPanelsPerRow>(product, panel);
  }
  for (; panel < end; ++panel) row_times_panels<kFormat, 1>(product, panel);
}

// values  [cols, 16]
template <WeightFormat kFormat>
void decode_panel(const std::byte* panel, std::int64_t cols, float* values) {
  using Reader = PanelReader<kFormat>;
  for (std::int64_t k = 0; k < cols; k += Reader::kBlock, panel += Reader::kBlockBytes) {
    Reader reader;
    reader.load(panel);
    for (int i = 0; i < Reader::kBlock; i += Reader::kStep) {
      Vectors w[Reader::kStep];
      reader.read(i, w);
      PAGODA_UNROLL
      for (int s = 0; s < Reader::kStep; ++s, values += kPanelColumns) w[s].store(values);
    }
  }
}

// x  [cols, kRows], rows side by side; w  [cols, 16]. Writes the rows that exist.
template <int kRows>
HWY_INLINE void rows_times_panel(const SegmentProduct& product, const float* x, const float* w,
                                 std::int64_t row, std::int64_t panel) {
  Vectors sums[kRows];
  PAGODA_UNROLL
  for (int r = 0; r < kRows; ++r) sums[r].clear();
  for (std::int64_t k = 0; k < product.cols; ++k, x += kRows, w += kPanelColumns) {
    Vectors values;
    values.load(w);
    PAGODA_UNROLL
    for (int r = 0; r < kRows; ++r) sums[r].add(x[r], values);
  }
  for (int r = 0; r < kRows && row + r < product.num_rows; ++r) {
    store_columns(sums[r], product, row + r, panel);
  }
}

// The rows side by side that the block beginning at `row` takes.
HWY_INLINE int block_rows(std::int64_t num_rows, std::int64_t row) {
  return num_rows - row > 2 * kFewRows ? kRowsPerBlock : kFewRows;
}

// One block of rows of x as [cols, rows of the block], rows that are missing zero.
void interleave_rows(const SegmentProduct& product, std::int64_t row, int rows, float* out) {
  for (int r = 0; r < rows; ++r) {
    const float* x = product.x + (row + r) * product.x_stride;
    const bool exists = row + r < product.num_rows;
    for (std::int64_t k = 0; k < product.cols; ++k) out[k * rows + r] = exists ? x[k] : 0.0f;
  }
}

std::int64_t num_interleaved_rows(std::int64_t num_rows) {
  std::int64_t padded = 0;
  for (std::int64_t row = 0; row < num_rows;) {
    const int rows = block_rows(num_rows, row);
    padded += rows;
    row += rows;
  }
  return padded;
}

// Rows [begin, end); begin is a multiple of kInterleaveGrain.
void interleave_blocks(const SegmentProduct& product, std::int64_t begin, std::int64_t end,
                       float* out) {
  static_assert(kInterleaveGrain % kRowsPerBlock == 0);
  for (std::int64_t row = begin; row < end;) {
    const int rows = block_rows(product.num_rows, row);
    interleave_rows(product, row, rows, out + row * product.cols);
    row += rows;
  }
}

template <WeightFormat kFormat>
void rows_times(const SegmentProduct& product, std::int64_t begin, std::int64_t end,
                float* values) {
  for (std::int64_t panel = begin; panel < end; ++panel) {
    decode_panel<kFormat>(product.panels + panel * product.panel_bytes, product.cols, values);
    for (std::int64_t row = 0; row < product.num_rows;) {
      const int rows = block_rows(product.num_rows, row);
      const float* x = product.interleaved + row * product.cols;
      if (rows == kRowsPerBlock) {
        rows_times_panel<kRowsPerBlock>(product, x, values, row, panel);
      } else {
        rows_times_panel<kFewRows>(product, x, values, row, panel);
      }
      row += rows;
    }
  }
}

template <WeightFormat kFormat>
void times_panels(const SegmentProduct& product, std::int64_t begin, std::int64_t end,
                  float* values) {
  if (product.num_rows == 1) return row_times<kFormat>(product, begin, end);
  rows_times<kFormat>(product, begin, end, values);
}

// Panels [begin, end) of the segment. `values`: [cols, 16] of scratch, a thread's own.
void multiply_panels(const SegmentProduct& product, std::int64_t begin, std::int64_t end,
                     float* values) {
  switch (product.format) {
    case WeightFormat::kF32:
      return times_panels<WeightFormat::kF32>(product, begin, end, values);
    case WeightFormat::kF16:
      return times_panels<WeightFormat::kF16>(product, begin, end, values);
    case WeightFormat::kBF16:
      return times_panels<WeightFormat::kBF16>(product, begin, end, values);
    case WeightFormat::kQ8_0:
      return times_panels<WeightFormat::kQ8_0>(product, begin, end, values);
    case WeightFormat::kQ4_0:
      return times_panels<WeightFormat::kQ4_0>(product, begin, end, values);
    case WeightFormat::kQ4_1:
      return times_panels<WeightFormat::kQ4_1>(product, begin, end, values);
  }
}

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pagoda::cpu {

HWY_EXPORT(interleave_blocks);
HWY_EXPORT(multiply_panels);
HWY_EXPORT(num_interleaved_rows);

namespace {

// Rows whose interleaved copy stays in a core's second-level cache while all panels pass by.
constexpr std::int64_t kRowsPerPass = 192;  // whole blocks of rows
// multiply_panels-adds worth a fork: about two microseconds of one core.
constexpr std::int64_t kForkWork = 1 << 16;

// All segments' panels as one range, so that a step forks once a product and not once a segment.
class PanelRange {
 public:
  PanelRange(const CpuWeight& weight, const SegmentProduct& rows, const float* bias)
      : weight_(weight), rows_(rows), bias_(bias) {}

  std::int64_t num_panels() const {
    std::int64_t total = 0;
    for (const WeightSegment& segment : weight_.segments()) total += segment.num_panels();
    return total;
  }

  void multiply(std::int64_t begin, std::int64_t end, float* values) const {
    const auto body = HWY_DYNAMIC_DISPATCH(multiply_panels);
    std::int64_t first = 0, column = 0;  // of the segment
    for (const WeightSegment& segment : weight_.segments()) {
      const std::int64_t from = std::max(begin - first, std::int64_t{0});
      const std::int64_t to = std::min(end - first, segment.num_panels());
      if (from < to) {
        SegmentProduct product = rows_;
        product.format = segment.format;
        product.panels = segment.panels->data();
        product.panel_bytes = segment.panel_bytes;
        product.num_columns = segment.rows;
        product.out += column;
        product.bias = bias_ ? bias_ + column : nullptr;
        body(product, from, to, values);
      }
      first += segment.num_panels();
      column += segment.rows;
    }
  }

 private:
  const CpuWeight& weight_;
  const SegmentProduct& rows_;
  const float* bias_;
};

void multiply_pass(Exec& exec, const CpuWeight& weight, SegmentProduct rows, const float* bias) {
  ThreadPool& pool = pool_of(exec);
  Tensor interleaved, values;
  if (rows.num_rows > 1) {
    const std::int64_t padded = HWY_DYNAMIC_DISPATCH(num_interleaved_rows)(rows.num_rows);
    interleaved = exec.allocate(DType::kFloat32, {padded, rows.cols});
    rows.interleaved = interleaved.data<float>();
    const auto interleave = HWY_DYNAMIC_DISPATCH(interleave_blocks);
    pool.parallel_for(rows.num_rows, kInterleaveGrain,
                      [&](std::int64_t begin, std::int64_t end, int) {
                        interleave(rows, begin, end, interleaved.data<float>());
                      });
    values = exec.allocate(DType::kFloat32, {pool.num_threads(), rows.cols, kPanelColumns});
  }
  const PanelRange range(weight, rows, bias);
  const std::int64_t panel_work = rows.num_rows * rows.cols * kPanelColumns;
  const std::int64_t grain = std::max(kForkWork / panel_work, std::int64_t{1});
  pool.parallel_for(
      range.num_panels(), grain, [&](std::int64_t begin, std::int64_t end, int thread) {
        float* scratch =
            values.defined() ? values.data<float>() + thread * rows.cols * kPanelColumns : nullptr;
        range.multiply(begin, end, scratch);
      });
}

}  // namespace

Tensor linear(Exec& exec, const Tensor& x, const Weight& weight, const LinearArgs& args) {
  const std::int64_t tokens = x.extent(0);
  Tensor out = exec.allocate(DType::kFloat32, {tokens, weight.rows});
  const float* bias = args.bias.defined() ? args.bias.data<float>() : nullptr;
  for (std::int64_t row = 0; row < tokens; row += kRowsPerPass) {
    multiply_pass(exec, packed(weight),
                  {.x = x.data<float>() + row * x.stride(0),
                   .x_stride = x.stride(0),
                   .num_rows = std::min(kRowsPerPass, tokens - row),
                   .cols = weight.cols,
                   .out = out.data<float>() + row * weight.rows,
                   .out_stride = weight.rows},
                  bias);
  }
  return out;
}

}  // namespace pagoda::cpu
#endif  // HWY_ONCE
