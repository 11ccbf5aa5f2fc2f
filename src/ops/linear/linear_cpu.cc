#include <algorithm>

#include "ops/linear/linear.h"
#include "ops/linear/linear_product.h"

namespace pagoda::cpu {
namespace {

// The panels of all segments as one range, so that each product forks only once.
class PanelRange {
 public:
  PanelRange(const LinearProduct& product, const CpuWeight& weight, const PanelTarget& target)
      : product_(product), weight_(weight), target_(target) {
    for (const WeightSegment& segment : weight_.segments()) num_panels_ += segment.num_panels();
  }

  // Returns the number of panels of all blocks. The range has the first block's panels, then the
  // second block's, and so on.
  std::int64_t size() const { return product_.num_blocks() * num_panels_; }

  void start(std::int64_t begin, int thread) const {
    std::int64_t panel = begin % num_panels_;
    for (const WeightSegment& segment : weight_.segments()) {
      if (panel < segment.num_panels()) return product_.start(segment, panel, thread);
      panel -= segment.num_panels();
    }
  }

  void multiply(std::int64_t begin, std::int64_t end, int thread) const {
    for (std::int64_t block = begin / num_panels_; block * num_panels_ < end; ++block) {
      const std::int64_t first = block * num_panels_;
      multiply_block(product_.block(block), std::max(begin - first, std::int64_t{0}),
                     std::min(end - first, num_panels_), thread);
    }
  }

 private:
  void multiply_block(const RowBlock& rows, std::int64_t begin, std::int64_t end,
                      int thread) const {
    std::int64_t first = 0, column = 0;  // of the segment
    for (const WeightSegment& segment : weight_.segments()) {
      const std::int64_t from = std::max(begin - first, std::int64_t{0});
      const std::int64_t to = std::min(end - first, segment.num_panels());
      if (from < to && from * kPanelColumns < segment.rows) {
        const std::int64_t at = column + from * kPanelColumns;
        product_.multiply(segment, from, to,
                          {.rows = rows,
                           .thread = thread,
                           .out = target_.out + rows.first * target_.stride + at,
                           .stride = target_.stride,
                           .bias = target_.bias ? target_.bias + at : nullptr});
      }
      first += segment.num_panels();
      column += segment.rows;
    }
  }

  const LinearProduct& product_;
  const CpuWeight& weight_;
  PanelTarget target_;  // of all rows
  std::int64_t num_panels_ = 0;
};

}  // namespace

Tensor linear(Exec& exec, const Tensor& x, const Weight& weight, const LinearArgs& args) {
  Tensor out = exec.allocate(DType::kFloat32, {x.extent(0), weight.rows});
  const float* bias = args.bias.defined() ? args.bias.data<float>() : nullptr;
  LinearProduct product(exec, weight, x);
  const std::int64_t tokens = x.extent(0), pass = product.rows_per_pass();
  for (std::int64_t row = 0; row < tokens; row += pass) {
    product.take_rows(row, std::min(pass, tokens - row));
    float* rows = out.data<float>() + row * weight.rows;
    const PanelRange range(product, packed(weight),
                           {.out = rows, .stride = weight.rows, .bias = bias});
    product.fetch_next();
    pool_of(exec).parallel_for(
        range.size(), 2 * product.grain_pairs(range.size() / 2),
        [&](std::int64_t begin, int thread) { range.start(begin, thread); },
        [&](std::int64_t begin, std::int64_t end, int thread) {
          range.multiply(begin, end, thread);
        });
  }
  return out;
}

}  // namespace pagoda::cpu
