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

// A product's rows and columns, as the two ways to share it out see them.
struct Work {
  Exec& exec;
  const Weight& weight;
  const Tensor& x;
  float* out;
  const float* bias;

  PanelTarget target(std::int64_t row) const {
    return {.out = out + row * weight.rows, .stride = weight.rows, .bias = bias};
  }
};

void share_out_panels(const Work& work) {
  LinearProduct product(work.exec, work.weight, work.x);
  const std::int64_t tokens = work.x.extent(0), pass = product.rows_per_pass();
  for (std::int64_t row = 0; row < tokens; row += pass) {
    product.take_rows(row, std::min(pass, tokens - row));
    const PanelRange range(product, packed(work.weight), work.target(row));
    pool_of(work.exec).parallel_for(
        range.num_panels(), 2 * product.grain_pairs(),
        [&](std::int64_t begin, std::int64_t end, int) { range.multiply(begin, end); });
  }
}

void share_out_rows(const Work& work) {
  const LinearProduct shape(work.exec, work.weight, work.x);
  const std::int64_t pass = shape.rows_per_pass();
  const Tensor memory =
      work.exec.allocate(DType::kFloat32, {work.exec.num_threads(), shape.tile_floats(pass)});
  const auto multiply = [&](std::int64_t begin, std::int64_t end, int thread) {
    LinearProduct product(work.exec, work.weight, work.x);
    for (std::int64_t row = begin; row < end; row += pass) {
      product.take_rows_alone(row, std::min(pass, end - row),
                              memory.data<float>() + thread * memory.stride(0));
      const PanelRange range(product, packed(work.weight), work.target(row));
      range.multiply(0, range.num_panels());
    }
  };
  pool_of(work.exec).parallel_for(work.x.extent(0), LinearProduct::kRowGrain, multiply);
}

}  // namespace

Tensor linear(Exec& exec, const Tensor& x, const Weight& weight, const LinearArgs& args) {
  Tensor out = exec.allocate(DType::kFloat32, {x.extent(0), weight.rows});
  const float* bias = args.bias.defined() ? args.bias.data<float>() : nullptr;
  const Work work = {exec, weight, x, out.data<float>(), bias};
  if (LinearProduct(exec, weight, x).splits_rows(x.extent(0))) {
    share_out_rows(work);
  } else {
    share_out_panels(work);
  }
  return out;
}

}  // namespace pagoda::cpu
