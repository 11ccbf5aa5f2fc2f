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

}  // namespace

Tensor gated_linear(Exec& exec, const Tensor& x, const Weight& weight, const Tensor& bias) {
  const CpuWeight& packed_weight = packed(weight);
  if (!is_gate_and_up(packed_weight))
    return cpu::swiglu(exec, cpu::linear(exec, x, weight, {.bias = bias}));
  const WeightSegment& gate = packed_weight.segments()[0];
  const WeightSegment& up = packed_weight.segments()[1];
  const std::int64_t tokens = x.extent(0), dim = gate.rows;
  Tensor out = exec.allocate(DType::kFloat32, {tokens, dim});
  LinearProduct product(exec, weight, x);
  const std::int64_t pass = std::min(product.rows_per_pass(), tokens);
  const Tensor memory =
      exec.allocate(DType::kFloat32, {pool_of(exec).num_threads(), pass, 2 * kPairColumns});
  const float* gate_bias = bias.defined() ? bias.data<float>() : nullptr;
  const auto gate_columns = HWY_DYNAMIC_DISPATCH(gate_columns);
  for (std::int64_t row = 0; row < tokens; row += pass) {
    const std::int64_t num_rows = std::min(pass, tokens - row);
    product.take_rows(row, num_rows);
    const auto multiply = [&](std::int64_t begin, std::int64_t end, int thread) {
      float* products = memory.data<float>() + thread * memory.stride(0);
      for (std::int64_t pair = begin; pair < end; ++pair) {
        const std::int64_t column = pair * kPairColumns;
        if (column >= dim) return;
        const float* of_gate = gate_bias ? gate_bias + column : nullptr;
        product.multiply(gate, 2 * pair, 2 * pair + 2, {products, 2 * kPairColumns, of_gate});
        product.multiply(
            up, 2 * pair, 2 * pair + 2,
            {products + kPairColumns, 2 * kPairColumns, of_gate ? of_gate + dim : nullptr});
        gate_columns({products, kPairColumns, num_rows, std::min(dim - column, kPairColumns),
                      out.data<float>() + row * dim + column, dim});
      }
    };
    const std::int64_t grain = std::max(product.grain_pairs() / 2, std::int64_t{1});
    pool_of(exec).parallel_for(gate.num_panels() / 2, grain, multiply);
  }
  return out;
}

}  // namespace pagoda::cpu
#endif  // HWY_ONCE
