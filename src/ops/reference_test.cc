// Compares the reference bodies with their formulas, written again in long double and in another
// form. All other bodies are compared with the reference, so it must not be wrong itself.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <memory>

#include "backend/backend.h"
#include "ops/add_rms_norm/add_rms_norm.h"
#include "ops/attention/attention_cases.h"
#include "ops/glu/glu.h"
#include "ops/kv_case.h"
#include "ops/kv_write/kv_write.h"
#include "ops/linear/linear_cases.h"
#include "ops/rms_norm/rms_norm.h"
#include "ops/rms_norm_rope/rms_norm_rope.h"
#include "ops/rope/rope.h"
#include "ops/select_rows/select_rows.h"

namespace pagoda {
namespace {

class ReferenceTest : public ::testing::Test {
 protected:
  Tensor upload(std::initializer_list<float> values, const Shape& shape) {
    return exec_->upload<float>(std::vector<float>(values), shape);
  }
  std::vector<float> run(const OpCase& op_case) {
    return run_case(*exec_, op_case, all_tokens(op_case)).value()[0];
  }

  std::unique_ptr<Exec> exec_ = make_exec({.backend = Backend::kReference}).value();
};

TEST_F(ReferenceTest, RmsNorm) {
  const Tensor out = rms_norm(*exec_, upload({3, -4, 0, 0, 1, 1, 1, 1}, {2, 4}),
                              upload({1, 2, 3, 4}, {4}), {.eps = 0});
  const float expected[] = {1.2f, -3.2f, 0, 0, 1, 2, 3, 4};  // 3 / sqrt(25 / 4) = 1.2
  for (int i = 0; i < 8; ++i) EXPECT_FLOAT_EQ(out.data<float>()[i], expected[i]);
  const Tensor zero = rms_norm(*exec_, upload({0, 0}, {1, 2}), upload({1, 1}, {2}), {.eps = 1e-5f});
  EXPECT_EQ(zero.data<float>()[0], 0.0f);
  const Tensor small =
      rms_norm(*exec_, upload({1e-3f, 1e-3f}, {1, 2}), upload({1, 1}, {2}), {.eps = 3e-6f});
  EXPECT_FLOAT_EQ(small.data<float>()[0], 0.5f);  // 1e-3 / sqrt(1e-6 + 3e-6)
}

TEST_F(ReferenceTest, AddRmsNormIsTheSumThenTheNorm) {
  const AddRmsNormResult result = add_rms_norm(*exec_, upload({1, -5}, {1, 2}),
                                               upload({2, 1}, {1, 2}), upload({2, 1}, {2}), {});
  EXPECT_EQ(result.sum.data<float>()[0], 3.0f);
  EXPECT_EQ(result.sum.data<float>()[1], -4.0f);
  EXPECT_NEAR(result.normed.data<float>()[0], 2 * 3 / std::sqrt(12.5), 1e-6);
  EXPECT_NEAR(result.normed.data<float>()[1], -4 / std::sqrt(12.5), 1e-6);
}

TEST_F(ReferenceTest, RmsNormRopeIsTheNormThenTheRotation) {
  const Tensor x = upload({3, -4}, {1, 1, 2}), weight = upload({1, 2}, {2});
  const Tensor angles = upload({0, 1}, {1, 2, 1});  // a quarter turn
  const Tensor out = rms_norm_rope(*exec_, x, weight, angles, {.norm = {.eps = 0}, .rope = {}});
  const float root = std::sqrt(12.5f);
  EXPECT_FLOAT_EQ(out.data<float>()[0], 8 / root);
  EXPECT_FLOAT_EQ(out.data<float>()[1], 3 / root);
}

TEST_F(ReferenceTest, SiluGates) {
  const Tensor out =
      glu(*exec_, upload({0, 1, -1, 100}, {1, 4}), upload({5, 2, 3, 0.5f}, {1, 4}), {});
  const long double e = std::exp(1.0L);
  EXPECT_EQ(out.data<float>()[0], 0.0f);
  EXPECT_NEAR(out.data<float>()[1], 2 * e / (1 + e), 1e-6);
  EXPECT_NEAR(out.data<float>()[2], -3 / (1 + e), 1e-6);
  EXPECT_EQ(out.data<float>()[3], 50.0f);
}

// A rotation multiplies a pair, as a complex number, by a complex number of length 1.
TEST_F(ReferenceTest, RopeMultipliesByUnitComplexNumbers) {
  constexpr int kHeadDim = 6, kHalf = 3;
  const std::vector<float> x = random_values(9, 2 * 3 * kHeadDim);
  const std::vector<float> inv_freq = {1.0f, 0.1f, 0.01f};
  const std::vector<std::int32_t> positions = {7, 100'000};
  for (const RopeStyle style : {RopeStyle::kHalves, RopeStyle::kAdjacent}) {
    const Tensor angles = rope_angles(*exec_, exec_->upload<std::int32_t>(positions, {2}),
                                      exec_->upload<float>(inv_freq, {kHalf}), {});
    const Tensor out =
        rope(*exec_, exec_->upload<float>(x, {2, 3, kHeadDim}), angles, {.style = style});
    for (int row = 0; row < 6; ++row) {
      for (int i = 0; i < kHalf; ++i) {
        const int a = row * kHeadDim + (style == RopeStyle::kHalves ? i : 2 * i);
        const int b = row * kHeadDim + (style == RopeStyle::kHalves ? i + kHalf : 2 * i + 1);
        const std::complex<long double> rotated =
            std::complex<long double>(x[a], x[b]) *
            std::polar(1.0L, static_cast<long double>(positions[row / 3]) * inv_freq[i]);
        EXPECT_NEAR(out.data<float>()[a], rotated.real(), 1e-6);
        EXPECT_NEAR(out.data<float>()[b], rotated.imag(), 1e-6);
      }
    }
  }
}

TEST_F(ReferenceTest, SelectRows) {
  const Tensor rows = exec_->upload<std::int32_t>(std::vector<std::int32_t>{2, 0, 2}, {3});
  const Tensor out = select_rows(*exec_, upload({0, 1, 10, 11, 20, 21}, {3, 2}), rows);
  const float expected[] = {20, 21, 0, 1, 20, 21};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(out.data<float>()[i], expected[i]);
}

TEST_F(ReferenceTest, KvWritePutsEntriesAtTheirSlotsRoundedToEven) {
  const KvView view = allocate_kv_view(*exec_, both(KvFormat::kBFloat16), {2, 2, 1, 2}).value();
  HostBatch host;
  host.token_ids = {0, 0};
  host.positions = {0, 1};
  host.slot_mapping = {3, -1};
  host.query_start = {0, 2};
  host.context_lens = {2};
  host.block_tables = {0};
  host.max_blocks = 1;
  const StepBatch batch = pagoda::upload(*exec_, host);
  // 1 + 2^-8 lies between two bfloat16 numbers: the even one is 1. 1 + 3 * 2^-8 rounds to 1 + 2^-6.
  const Tensor k = upload({1.00390625f, 1.01171875f, 5, 5}, {2, 1, 2});
  const KvView written = kv_write(*exec_, view, k, upload({-2, -3, 5, 5}, {2, 1, 2}), batch);
  const float keys[] = {0, 0, 0, 0, 0, 0, 1, 1.015625f}, values[] = {0, 0, 0, 0, 0, 0, -2, -3};
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(to_float(written.keys.elements.data<bf16>()[i]), keys[i]);
    EXPECT_EQ(to_float(written.values.elements.data<bf16>()[i]), values[i]);
  }
}

TEST_F(ReferenceTest, LinearOfEveryFormat) {
  for (const WeightFormat format : kWeightFormats) {
    const int cols = std::max(64, traits_of(format).block_size);
    const LinearShape shape{.tokens = 3,
                            .cols = cols,
                            .parts = {{format, 5}, {WeightFormat::kF32, 2}},
                            .has_bias = true,
                            .x_padding = 3};
    const std::vector<float> x = linear_inputs(shape), bias = linear_bias(shape);
    const std::vector<float> out = run(make_linear_case(shape));
    std::vector<float> weight;  // [7, cols]
    for (const HostTensor& part : linear_parts(shape)) {
      weight.resize(weight.size() + part.shape.num_elements());
      traits_of(part.format)
          .dequantize(part.bytes, weight.data() + weight.size() - part.shape.num_elements());
    }
    for (int t = 0; t < 3; ++t) {
      for (int j = 0; j < 7; ++j) {
        long double sum = 0;
        for (int k = cols - 1; k >= 0; --k) {
          sum += static_cast<long double>(x[t * (cols + 3) + k]) * weight[j * cols + k];
        }
        EXPECT_NEAR(out[t * 7 + j], sum + bias[j], 1e-6 * (1 + std::fabs(sum)))
            << traits_of(format).name;
      }
    }
  }
}

// Computes one output row by the formula alone, without a running maximum. `position` is the
// query's, `first` its sequence's first entry.
std::vector<long double> attend(const AttentionShape& shape, const AttentionInputs& inputs,
                                const float* q, int head, int first, int position) {
  const int kv_head = head / (shape.heads / shape.kv_heads);
  const auto at = [&](const std::vector<float>& entries, int p, int d) -> long double {
    return entries[((first + p) * shape.kv_heads + kv_head) * shape.head_dim + d];
  };
  std::vector<long double> sums(shape.head_dim);
  long double total = shape.has_sinks ? std::exp(static_cast<long double>(inputs.sinks[head])) : 0;
  for (int p = 0; p <= position; ++p) {
    if (shape.window > 0 && position - p >= shape.window) continue;
    long double score = 0;
    for (int d = 0; d < shape.head_dim; ++d) score += q[d] * at(inputs.keys, p, d);
    score /= std::sqrt(static_cast<long double>(shape.head_dim));
    if (shape.soft_cap > 0) score = shape.soft_cap * std::tanh(score / shape.soft_cap);
    const long double weight = std::exp(score);
    total += weight;
    for (int d = 0; d < shape.head_dim; ++d) sums[d] += weight * at(inputs.values, p, d);
  }
  for (long double& sum : sums) sum /= total;
  return sums;
}

TEST_F(ReferenceTest, Attention) {
  const std::vector<AttentionSeq> seqs = {{20, 1}, {1, 1}, {37, 9}};
  for (const AttentionShape& shape : {
           AttentionShape{.seqs = seqs, .heads = 6, .kv_heads = 2, .head_dim = 8, .block_size = 4},
           AttentionShape{.seqs = seqs, .heads = 2, .head_dim = 8, .window = 5},
           AttentionShape{.seqs = seqs, .heads = 2, .head_dim = 8, .soft_cap = 1},
           AttentionShape{.seqs = seqs, .heads = 2, .head_dim = 8, .has_sinks = true},
       }) {
    const AttentionInputs inputs = attention_inputs(shape);
    const std::vector<float> out = run(make_attention_case(shape));
    int token = 0, first = 0;
    for (const AttentionSeq& seq : seqs) {
      for (int p = seq.context_len - seq.query_len; p < seq.context_len; ++p, ++token) {
        for (int head = 0; head < shape.heads; ++head) {
          const int row = (token * shape.heads + head) * shape.head_dim;
          const auto expected = attend(shape, inputs, inputs.queries.data() + row, head, first, p);
          for (int d = 0; d < shape.head_dim; ++d) EXPECT_NEAR(out[row + d], expected[d], 1e-6);
        }
      }
      first += seq.context_len;
    }
  }
}

}  // namespace
}  // namespace pagoda
