// Tests the verdict on a GPU's matrix units, for each kind that the emulator has.
#include "backend/gpu/matrix_units.h"

#include <gtest/gtest.h>

#include "backend/backend.h"
#include "tests/metal/stand_in.h"

namespace pagoda::gpu {
namespace {

MatrixUnits verdict_on(emulator::MatrixOrder order) {
  mlx::stand_in::Options options;
  options.emulator.matrix_order = order;
  mlx::stand_in::configure(options);
  return matrix_units(*make_exec({.backend = Backend::kMlx}).value());
}

TEST(MatrixUnitsTest, TheirOrderIsFoundOut) {
  EXPECT_EQ(verdict_on(emulator::MatrixOrder::kAscending), MatrixUnits::kAscendingChain);
  EXPECT_EQ(verdict_on(emulator::MatrixOrder::kPairs), MatrixUnits::kOtherOrder);
  EXPECT_EQ(verdict_on(emulator::MatrixOrder::kByPlace), MatrixUnits::kUnusable);
}

TEST(MatrixUnitsTest, AGpuThatComputesNothingIsRefused) {
  mlx::stand_in::configure({.skips_kernels = true});
  const auto exec = make_exec({.backend = Backend::kMlx});
  ASSERT_FALSE(exec.ok());
  EXPECT_EQ(exec.status().code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace pagoda::gpu
