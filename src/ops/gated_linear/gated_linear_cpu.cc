// gated_linear on cpu: a thread multiplies a pair of panels of gate, and the pair of up for the
// same columns. Both products go into the thread's memory, which stays in its cache. Then the
// thread writes glu of both.
#include "ops/gated_linear/gated_linear.h"

#include <algorithm>

#include "ops/gated_linear/gated_linear_cpu.h"
#include "ops/linear/linear_product.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/gated_linear/gated_linear_cpu.cc"
#include "hwy/foreach_target.h"  // compiles this file once a target

#include "hwy/highway.h"
#include "ops/glu/glu_row-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {

constexpr std::int64_t kRowsAhead = 8;

void gate_columns_of(const GatedColumns& columns, const GluArgs& args) {
  const float* gate = columns.products;
  float* out = columns.out;
  for (std::int64_t row = 0; row < columns.num_rows; ++row) {
    // Rows of out are far apart: without a prefetch of its cache lines, a row costs a third more.
    const float* ahead = out + kRowsAhead * columns.out_stride;
    __builtin_prefetch(ahead, 1);
    __builtin_prefetch(ahead + columns.width / 2, 1);
    glu_row(gate, gate + columns.width, columns.count, args, out);
    gate += 2 * columns.width;
    out += columns.out_stride;
  }
}

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pagoda::cpu {

HWY_EXPORT(gate_columns_of);

void gate_columns(const GatedColumns& columns, const GluArgs& args) {
  HWY_DYNAMIC_DISPATCH(gate_columns_of)(columns, args);
}

namespace {

constexpr std::int64_t kPairColumns = 2 * kPanelColumns;

// The work of one call.
class GatedWork {
 public:
  GatedWork(Exec& exec, const Tensor& x, const Weight& weight, const GatedLinearArgs& args,
            const Tensor& out)
      : exec_(exec),
        product_(exec, weight, x),
        gate_(packed(weight).segments()[0]),
        up_(packed(weight).segments()[1]),
        bias_(args.bias.defined() ? args.bias.data<float>() : nullptr),
        glu_(args.glu),
        tokens_(x.extent(0)),
        out_(out.data<float>()) {}

  void run() {
    const std::int64_t pass = product_.rows_per_pass();
    const std::int64_t num_rows = std::min(product_.block_rows(), tokens_);
    const Tensor memory =
        exec_.allocate(DType::kFloat32, {exec_.num_threads(), num_rows, 2 * kPairColumns});
    const auto start = [&](std::int64_t begin, int thread) {
      product_.start(gate_, 2 * (begin % gate_.num_pairs()), thread);
    };
    const auto multiply = [&](std::int64_t begin, std::int64_t end, int thread) {
      float* products = memory.data<float>() + thread * memory.stride(0);
      for (std::int64_t i = begin; i < end; ++i) {
        multiply_pair(product_.block(i / gate_.num_pairs()), i % gate_.num_pairs(), products,
                      thread);
      }
    };
    for (first_row_ = 0; first_row_ < tokens_; first_row_ += pass) {
      product_.take_rows(first_row_, std::min(pass, tokens_ - first_row_));
      const std::int64_t count = product_.num_blocks() * gate_.num_pairs();
      const std::int64_t grain = std::max(product_.grain_pairs(2 * count) / 2, std::int64_t{1});
      product_.fetch_next();
      pool_of(exec_).parallel_for(count, grain, start, multiply);
    }
  }

 private:
  void multiply_pair(const RowBlock& rows, std::int64_t pair, float* products, int thread) const {
    const std::int64_t dim = gate_.rows, column = pair * kPairColumns;
    const float* of_gate = bias_ ? bias_ + column : nullptr;
    const float* of_up = bias_ ? bias_ + dim + column : nullptr;
    product_.multiply(gate_, 2 * pair, 2 * pair + 2,
                      {rows, thread, products, 2 * kPairColumns, of_gate});
    product_.multiply(up_, 2 * pair, 2 * pair + 2,
                      {rows, thread, products + kPairColumns, 2 * kPairColumns, of_up});
    gate_columns({products, kPairColumns, rows.count, std::min(dim - column, kPairColumns),
                  out_ + (first_row_ + rows.first) * dim + column, dim},
                 glu_);
  }

  Exec& exec_;
  LinearProduct product_;
  const WeightSegment& gate_;
  const WeightSegment& up_;
  const float* bias_;
  GluArgs glu_;
  std::int64_t tokens_;
  float* out_;
  std::int64_t first_row_ = 0;  // first row of the current pass
};

}  // namespace

Tensor gated_linear(Exec& exec, const Tensor& x, const Weight& weight,
                    const GatedLinearArgs& args) {
  if (!packed(weight).is_gated()) {
    const auto [gate, up] = halves_of(cpu::linear(exec, x, weight, {.bias = args.bias}));
    return cpu::glu(exec, gate, up, args.glu);
  }
  Tensor out = exec.allocate(DType::kFloat32, {x.extent(0), weight.rows / 2});
  GatedWork(exec, x, weight, args, out).run();
  return out;
}

}  // namespace pagoda::cpu
#endif  // HWY_ONCE
