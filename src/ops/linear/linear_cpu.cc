#include <algorithm>

#include "ops/linear/linear.h"
#include "ops/linear/linear_product.h"

namespace pagoda::cpu {
namespace {

// All segments' panels are one range, so that a step forks once a product.
class PanelRange {
 public:
  PanelRange(const LinearProduct& product, const CpuWeight& weight, const PanelTarget& target)
      : product_(product), weight_(weight), target_(target) {}

  std::int64_t num_panels() const {
    std::int64_t total = 0;
    for (const WeightSegment& segment : weight_.segments()) total += segment.num_panels();
    return total;
  }

  void multiply(std::int64_t begin, std::int64_t end) const {
    std::int64_t first = 0, column = 0;  // of the segment
    for (const WeightSegment& segment : weight_.segments()) {
      const std::int64_t from = std::max(begin - first, std::int64_t{0});
      const std::int64_t to = std::min(end - first, segment.num_panels());
      if (from < to && from * kPanelColumns < segment.rows) {
        const std::int64_t at = column + from * kPanelColumns;
        product_.multiply(segment, from, to,
                          {.out = target_.out + at,
                           .stride = target_.stride,
                           .bias = target_.bias ? target_.bias + at : nullptr});
      }
      first += segment.num_panels();
      column += segment.rows;
    }
  }

 private:
  const LinearProduct& product_;
  const CpuWeight& weight_;
  PanelTarget target_;
};

}  // namespace

Tensor linear(Exec& exec, const Tensor& x, const Weight& weight, const LinearArgs& args) {
  const std::int64_t tokens = x.extent(0);
  Tensor out = exec.allocate(DType::kFloat32, {tokens, weight.rows});
  const float* bias = args.bias.defined() ? args.bias.data<float>() : nullptr;
  LinearProduct product(exec, weight, x);
  const std::int64_t pass = product.rows_per_pass();
  for (std::int64_t row = 0; row < tokens; row += pass) {
    product.take_rows(row, std::min(pass, tokens - row));
    const PanelRange range(
        product, packed(weight),
        {.out = out.data<float>() + row * weight.rows, .stride = weight.rows, .bias = bias});
    pool_of(exec).parallel_for(
        range.num_panels(), 2 * product.grain_pairs(),
        [&](std::int64_t begin, std::int64_t end, int) { range.multiply(begin, end); });
  }
  return out;
}

}  // namespace pagoda::cpu
