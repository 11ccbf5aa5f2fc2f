#include "cli/bench/machine_limits.h"

#include <gtest/gtest.h>

namespace pagoda {
namespace {

TEST(MachineLimits, BestOfTakesTheBetterFigureOfEach) {
  const MachineLimits a = {.num_threads = 2, .read_gb_per_s = 10, .float32_gmac_per_s = 5};
  const MachineLimits b = {.num_threads = 2,
                           .read_gb_per_s = 9,
                           .float32_gmac_per_s = 6,
                           .bf16_gmac_per_s = 7,
                           .int8_gmac_per_s = 8};
  const MachineLimits best = best_of(a, b);
  EXPECT_EQ(best.read_gb_per_s, 10);
  EXPECT_EQ(best.float32_gmac_per_s, 6);
  EXPECT_EQ(best.bf16_gmac_per_s, 7);
  EXPECT_EQ(best.int8_gmac_per_s, 8);
  EXPECT_FALSE(best.int16_gmac_per_s);
}

TEST(MachineLimits, ProductsAreHeldToBf16WhereThereIsAny) {
  EXPECT_EQ((MachineLimits{.float32_gmac_per_s = 5}.product_gmac_per_s()), 5);
  EXPECT_EQ((MachineLimits{.float32_gmac_per_s = 5, .bf16_gmac_per_s = 9}.product_gmac_per_s()), 9);
}

// Bounds that any machine meets, however little of it a process gets. A wrong unit, or a loop that
// the compiler removed, violates them.
TEST(MachineProbe, MeasuresWhatMachinesCanDo) {
  const MachineProbe probe(1);
  const MachineLimits limits = probe.measure();
  EXPECT_EQ(limits.num_threads, 1);
  EXPECT_GT(limits.read_gb_per_s, 0.005);
  EXPECT_LT(limits.read_gb_per_s, 1000);
  for (const double gmac :
       {limits.float32_gmac_per_s, limits.bf16_gmac_per_s.value_or(10),
        limits.int16_gmac_per_s.value_or(10), limits.int8_gmac_per_s.value_or(10)}) {
    EXPECT_GT(gmac, 0.005);
    EXPECT_LT(gmac, 20000);
  }
}

}  // namespace
}  // namespace pagoda
