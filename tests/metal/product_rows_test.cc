// Tests that kernels for one row, for a few and for many give the same bits, for each kind of
// matrix units. The environment sets the kind (stand_in.h).
#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/weight.h"
#include "ops/linear/linear.h"
#include "ops/op_case.h"
#include "tensor/read_values.h"

namespace pagoda {
namespace {

constexpr int kMostRows = 512;
constexpr int kWidth = 512;
constexpr int kColumns = 72;  // two panels, and a part of a third

class ProductRows : public ::testing::TestWithParam<CaseFormat> {
 protected:
  std::vector<float> multiply(int first, int count) {
    const std::vector<float> part(x_.begin() + first * kWidth,
                                  x_.begin() + (first + count) * kWidth);
    const Tensor rows = exec_->upload<float>(part, {count, kWidth});
    const Tensor out = linear(*exec_, rows, weight_, {});
    const std::span<const float> values = read_values<float>(*exec_, out).value();
    return {values.begin(), values.end()};
  }

  std::unique_ptr<Exec> exec_ = make_exec({.backend = Backend::kMlx}).value();
  std::vector<float> x_ = random_values(7, std::int64_t{kMostRows} * kWidth);
  HostTensor matrix_ = random_matrix(8, GetParam(), kColumns, kWidth);
  Weight weight_ = prepare_weight(*exec_, {&matrix_, 1}).value();
};

TEST_P(ProductRows, ChangeNoBit) {
  const std::vector<float> all = multiply(0, kMostRows);
  for (const int count : {1, 2, 3, 4, 5, 8, 31, 32, 33}) {
    for (const int first : {0, 17, kMostRows - count}) {
      const std::vector<float> some = multiply(first, count);
      const std::span<const float> same(all.begin() + first * kColumns, count * kColumns);
      EXPECT_TRUE(same_bits(some, same)) << count << " rows from " << first;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, ProductRows,
                         ::testing::Values(CaseFormat(WeightFormat::kF32),
                                           CaseFormat(WeightFormat::kBF16),
                                           CaseFormat(WeightFormat::kQ4_K),
                                           CaseFormat(WeightFormat::kQ6_K),
                                           CaseFormat(AffineLayout{4, 64, WeightFormat::kBF16})));

}  // namespace
}  // namespace pagoda
