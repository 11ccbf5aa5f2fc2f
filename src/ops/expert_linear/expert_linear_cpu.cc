// expert_linear on cpu: threads multiply rows with their experts' panels, and then add up the rows
// of tokens.
#include "ops/expert_linear/expert_linear.h"

#include <algorithm>
#include <cmath>

#include "ops/expert_linear/expert_linear_cpu.h"
#include "ops/expert_linear/expert_product.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/expert_linear/expert_linear_cpu.cc"
#include "hwy/foreach_target.h"  // compiles this file once a target

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void add_rows(const TokenRows& token, float* out) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto row = [&](std::int64_t i) { return token.products + token.places[i] * token.hidden; };
  std::int64_t j = 0;
  for (; j + lanes <= token.hidden; j += lanes) {
    auto sum = hn::Mul(hn::Set(d, token.weights[0]), hn::LoadU(d, row(0) + j));
    for (std::int64_t i = 1; i < token.num_chosen; ++i) {
      sum = hn::MulAdd(hn::Set(d, token.weights[i]), hn::LoadU(d, row(i) + j), sum);
    }
    if (token.shared != nullptr) {
      sum = hn::MulAdd(hn::Set(d, token.shared_weight), hn::LoadU(d, token.shared + j), sum);
    }
    hn::StoreU(sum, d, out + j);
  }
  for (; j < token.hidden; ++j) {
    float sum = token.weights[0] * row(0)[j];
    for (std::int64_t i = 1; i < token.num_chosen; ++i) sum += token.weights[i] * row(i)[j];
    if (token.shared != nullptr) sum += token.shared_weight * token.shared[j];
    out[j] = sum;
  }
}

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pagoda::cpu {

HWY_EXPORT(add_rows);

namespace {

// A multiple of the heights of all tiles. So many rows of 2,048 values stay in a core's second-level
// cache, as tiles.
constexpr int kBlockRows = 192;
// Values of products worth a fork.
constexpr std::int64_t kForkValues = 1 << 14;

float sigmoid(float x) {
  return 1 / (1 + std::exp(-x));
}

void multiply_rows(Exec& exec, const Tensor& x, const ExpertWeight& weight, const Routing& routing,
                   const Tensor& bias, float* products) {
  const std::int64_t hidden = weight.rows();
  const ExpertProduct product(exec, weight, x, ExpertRows::kSorted, routing);
  product.for_each_piece([&](const ExpertPiece& piece) {
    const std::int64_t column = 2 * kPanelColumns * piece.first_pair;
    const float* of_expert =
        bias.defined() ? bias.data<float>() + piece.expert * hidden + column : nullptr;
    product.multiply(piece, 0, 2 * piece.first_pair, 2 * piece.end_pair,
                     products + piece.first_row * hidden + column, hidden, of_expert);
  });
}

}  // namespace

int expert_block_rows(const Exec&, std::int64_t) {
  return kBlockRows;
}

Tensor expert_linear(Exec& exec, const Tensor& x, const ExpertWeight& weight,
                     const Routing& routing, const Tensor& weights, const ExpertLinearArgs& args) {
  const std::int64_t tokens = weights.extent(0), num_chosen = weights.extent(1);
  const std::int64_t hidden = weight.rows();
  Tensor out = exec.allocate(DType::kFloat32, {tokens, hidden});
  const Tensor products = exec.allocate(DType::kFloat32, {x.extent(0), hidden});
  multiply_rows(exec, x, weight, routing, args.bias, products.data<float>());
  const std::int64_t grain = std::max(kForkValues / (num_chosen * hidden), std::int64_t{1});
  pool_of(exec).parallel_for(tokens, grain, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t t = begin; t < end; ++t) {
      const bool is_gated = args.shared_gate.defined();
      HWY_DYNAMIC_DISPATCH(add_rows)
      ({.products = products.data<float>(),
        .hidden = hidden,
        .num_chosen = num_chosen,
        .places = routing.places.data<std::int32_t>() + t * num_chosen,
        .weights = weights.data<float>() + t * num_chosen,
        .shared = args.shared.defined() ? args.shared.data<float>() + t * hidden : nullptr,
        .shared_weight = is_gated ? sigmoid(args.shared_gate.data<float>()[t]) : 1},
       out.data<float>() + t * hidden);
    }
  });
  return out;
}

}  // namespace pagoda::cpu
#endif  // HWY_ONCE
