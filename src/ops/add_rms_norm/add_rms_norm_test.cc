// A norm of what is added, within the sum, has the bits of one before it.
#include "ops/add_rms_norm/add_rms_norm.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "ops/op_case.h"
#include "ops/rms_norm/rms_norm.h"
#include "tests/support/every_exec.h"

namespace pagoda {
namespace {

TEST(AddRmsNorm, ANormOfDeltaHasTheBitsOfOneBeforeTheSum) {
  constexpr std::int64_t kTokens = 3;
  for (const auto& exec : every_exec()) {
    for (const std::int64_t dim : {64, 577, 2816, 9000}) {
      const auto activations = [&](std::uint32_t seed) {
        return upload_activations(*exec, random_values(seed, kTokens * dim), {kTokens, dim});
      };
      const auto norm = [&](std::uint32_t seed) {
        return exec->upload<float>(random_values(seed, dim), {dim});
      };
      const Tensor x = activations(1), delta = activations(2), weight = norm(3);
      AddRmsNormArgs args = {.delta_factor = 0.3f, .sum_factor = 1.1f};
      const Tensor normed = rms_norm(*exec, delta, norm(4), {.eps = args.eps});
      const AddRmsNormResult apart = add_rms_norm(*exec, x, normed, weight, args);
      args.delta_norm = norm(4);
      const AddRmsNormResult within = add_rms_norm(*exec, x, delta, weight, args);
      for (const Tensor AddRmsNormResult::*result :
           {&AddRmsNormResult::sum, &AddRmsNormResult::normed}) {
        EXPECT_EQ(compute_values<float>(*exec, within.*result),
                  compute_values<float>(*exec, apart.*result))
            << backend_name(exec->backend()) << ", " << dim;
      }
    }
  }
}

}  // namespace
}  // namespace pagoda
