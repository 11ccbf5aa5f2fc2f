// Tests the measuring of a GPU's peaks on the emulator. The results of kernels are checked; the
// speeds are arbitrary.
#include "backend/gpu/gpu_peaks.h"

#include <gtest/gtest.h>

#include "backend/backend.h"
#include "tests/metal/stand_in.h"

namespace pagoda::gpu {
namespace {

constexpr GpuPeakWork kTiny = {.read_bytes = 256 << 10, .fma_groups = 2, .fma_rounds = 2};

class GpuPeaksTest : public ::testing::TestWithParam<bool> {};

TEST_P(GpuPeaksTest, EveryRunIsRight) {
  mlx::stand_in::configure({.is_traced = GetParam()});
  const auto exec = make_exec({.backend = Backend::kMlx}).value();
  const Result<GpuPeaks> peaks = measure_gpu_peaks(*exec, kTiny);
  ASSERT_TRUE(peaks.ok()) << peaks.status().message();
  EXPECT_GT(peaks->read_gb_per_s, 0);
  EXPECT_GT(peaks->fma_gflop_per_s, 0);
}

INSTANTIATE_TEST_SUITE_P(Builds, GpuPeaksTest, ::testing::Bool());

TEST(GpuPeaksOfABrokenGpu, AreNone) {
  mlx::stand_in::configure({});
  const auto exec = make_exec({.backend = Backend::kMlx}).value();
  mlx::stand_in::configure({.skips_kernels = true});
  const Result<GpuPeaks> peaks = measure_gpu_peaks(*exec, kTiny);
  ASSERT_FALSE(peaks.ok());
  EXPECT_EQ(peaks.status().code(), StatusCode::kUnavailable);
  EXPECT_NE(peaks.status().message().find("reads"), std::string::npos);
}

}  // namespace
}  // namespace pagoda::gpu
