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
#include "ops/linear/linear_kernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {

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
  static_assert(kInterleaveGrain % kMostOfFew == 0 && kInterleaveGrain % kMostOfMany == 0);
  for (std::int64_t row = begin; row < end;) {
    const int rows = block_rows(product.num_rows, row);
    interleave_rows(product, row, rows, out + row * product.cols);
    row += rows;
  }
}

// Panels [begin, end) of the segment. `values`: [kMostPanelsDecoded, cols, 16], a thread's own.
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
    default:
      PAGODA_CHECK(false, "[linear] a format without a panel");
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
// Multiply-adds worth a fork: about two microseconds of one core.
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
  rows.interleaved = rows.x;  // one row is that already
  if (rows.num_rows > 1) {
    const std::int64_t padded = HWY_DYNAMIC_DISPATCH(num_interleaved_rows)(rows.num_rows);
    interleaved = exec.allocate(DType::kFloat32, {padded, rows.cols});
    rows.interleaved = interleaved.data<float>();
    const auto interleave = HWY_DYNAMIC_DISPATCH(interleave_blocks);
    pool.parallel_for(rows.num_rows, kInterleaveGrain,
                      [&](std::int64_t begin, std::int64_t end, int) {
                        interleave(rows, begin, end, interleaved.data<float>());
                      });
    values = exec.allocate(DType::kFloat32,
                           {pool.num_threads(), kMostPanelsDecoded, rows.cols, kPanelColumns});
  }
  const PanelRange range(weight, rows, bias);
  const std::int64_t grain_work = rows.num_rows * rows.cols * kPanelColumns * kPanelGroup;
  const std::int64_t grains = std::max(kForkWork / grain_work, std::int64_t{1});
  pool.parallel_for(
      range.num_panels(), grains * kPanelGroup,
      [&](std::int64_t begin, std::int64_t end, int thread) {
        float* own = values.defined() ? values.data<float>() + thread * values.stride(0) : nullptr;
        range.multiply(begin, end, own);
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
