// gated_linear on cpu: a thread multiplies a pair of gate's panels and the pair of up's that
// belongs to it into memory of its own, which its cache keeps, and writes swiglu of both.
#include "ops/gated_linear/gated_linear.h"

#include <algorithm>

#include "ops/gated_linear/gated_linear_cpu.h"
#include "ops/linear/linear_product.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/gated_linear/gated_linear_cpu.cc"
#include "hwy/foreach_target.h"  // compiles this file once a target

#include "hwy/highway.h"
#include "ops/swiglu/swiglu_row-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {

void gate_columns(const GatedColumns& columns) {
  const float* gate = columns.products;
  float* out = columns.out;
  for (std::int64_t row = 0; row < columns.num_rows; ++row) {
    swiglu_row(gate, gate + columns.width, columns.count, out);
    gate += 2 * columns.width;
    out += columns.out_stride;
  }
}

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pagoda::cpu {

HWY_EXPORT(gate_columns);

namespace {

constexpr std::int64_t kPairColumns = 2 * kPanelColumns;

// Gate and up are the segments of a weight of two parts that are as long as each other.
bool is_gate_and_up(const CpuWeight& weight) {
  const auto& segments = weight.segments();
  return segments.size() == 2 && segments[0].rows == segments[1].rows;
}

// Gate, up and their products, as the two ways to share them out see them.
class GatedWork {
 public:
  GatedWork(Exec& exec, const Tensor& x, const Weight& weight, const Tensor& bias,
            const Tensor& out)
      : exec_(exec),
        x_(x),
        weight_(weight),
        gate_(packed(weight).segments()[0]),
        up_(packed(weight).segments()[1]),
        bias_(bias.defined() ? bias.data<float>() : nullptr),
        out_(out.data<float>()) {}

  void share_out_pairs() const {
    LinearProduct product(exec_, weight_, x_);
    const std::int64_t tokens = x_.extent(0), pass = std::min(product.rows_per_pass(), tokens);
    const Tensor memory = products_of(pass);
    for (std::int64_t row = 0; row < tokens; row += pass) {
      const Rows rows = {row, std::min(pass, tokens - row)};
      product.take_rows(rows.first, rows.count);
      const std::int64_t grain = std::max(product.grain_pairs() / 2, std::int64_t{1});
      pool_of(exec_).parallel_for(
          num_pairs(), grain, [&](std::int64_t begin, std::int64_t end, int thread) {
            float* products = memory.data<float>() + thread * memory.stride(0);
            for (std::int64_t p = begin; p < end; ++p) multiply_pair(product, rows, p, products);
          });
    }
  }

  void share_out_rows() const {
    const LinearProduct shape(exec_, weight_, x_);
    const std::int64_t pass = shape.rows_per_pass();
    const Tensor memory = products_of(pass);
    const Tensor tiles =
        exec_.allocate(DType::kFloat32, {exec_.num_threads(), shape.tile_floats(pass)});
    const auto multiply = [&](std::int64_t begin, std::int64_t end, int thread) {
      LinearProduct product(exec_, weight_, x_);
      for (std::int64_t row = begin; row < end; row += pass) {
        const Rows rows = {row, std::min(pass, end - row)};
        product.take_rows_alone(rows.first, rows.count,
                                tiles.data<float>() + thread * tiles.stride(0));
        float* products = memory.data<float>() + thread * memory.stride(0);
        for (std::int64_t p = 0; p < num_pairs(); ++p) multiply_pair(product, rows, p, products);
      }
    };
    pool_of(exec_).parallel_for(x_.extent(0), LinearProduct::kRowGrain, multiply);
  }

 private:
  struct Rows {
    std::int64_t first;
    std::int64_t count;
  };

  std::int64_t num_pairs() const { return gate_.num_panels() / 2; }
  Tensor products_of(std::int64_t rows) const {
    return exec_.allocate(DType::kFloat32, {exec_.num_threads(), rows, 2 * kPairColumns});
  }

  void multiply_pair(const LinearProduct& product, const Rows& rows, std::int64_t pair,
                     float* products) const {
    const std::int64_t dim = gate_.rows, column = pair * kPairColumns;
    const float* of_gate = bias_ ? bias_ + column : nullptr;
    const float* of_up = bias_ ? bias_ + dim + column : nullptr;
    product.multiply(gate_, 2 * pair, 2 * pair + 2, {products, 2 * kPairColumns, of_gate});
    product.multiply(up_, 2 * pair, 2 * pair + 2,
                     {products + kPairColumns, 2 * kPairColumns, of_up});
    HWY_DYNAMIC_DISPATCH(gate_columns)
    ({products, kPairColumns, rows.count, std::min(dim - column, kPairColumns),
      out_ + rows.first * dim + column, dim});
  }

  Exec& exec_;
  const Tensor& x_;
  const Weight& weight_;
  const WeightSegment& gate_;
  const WeightSegment& up_;
  const float* bias_;
  float* out_;
};

}  // namespace

Tensor gated_linear(Exec& exec, const Tensor& x, const Weight& weight, const Tensor& bias) {
  if (!is_gate_and_up(packed(weight))) {
    return cpu::swiglu(exec, cpu::linear(exec, x, weight, {.bias = bias}));
  }
  Tensor out = exec.allocate(DType::kFloat32, {x.extent(0), weight.rows / 2});
  const GatedWork work(exec, x, weight, bias, out);
  if (LinearProduct(exec, weight, x).splits_rows(x.extent(0))) {
    work.share_out_rows();
  } else {
    work.share_out_pairs();
  }
  return out;
}

}  // namespace pagoda::cpu
#endif  // HWY_ONCE
