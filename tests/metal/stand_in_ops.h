// Ops for tests of the stand-in. Kernels are plain functions, and an op is an MLX primitive. So
// only metal_dispatch.cc and MLX itself are between a launch and the stand-in.
#pragma once

#include <gtest/gtest.h>
#include <mlx/array.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/gpu/gpu_launch.h"

namespace pagoda::mlx::stand_in {

namespace mx = ::mlx::core;

using gpu::GpuDispatch;
using gpu::GpuFunction;
using gpu::GpuLaunch;
using gpu::GpuOperand;
using gpu::GpuParameters;
using gpu::GpuSource;
using gpu::input;
using gpu::output;
using gpu::scratch;

constexpr int kCount = 64;  // elements of every array

// The parameters of every kernel here.
struct AddParameters {
  int count;
  float value;
};

extern const GpuSource kSource;
extern const GpuSource kOtherSource;
extern const GpuSource kNotAscii;

// An op with one output of kCount elements. The output shares the memory of input `memory_of`, if
// that is not negative. The inputs begin at `byte_offset`.
struct Op {
  std::vector<GpuDispatch> dispatches;
  std::vector<mx::array> inputs;
  std::vector<std::size_t> scratch_bytes = {};
  mx::Dtype dtype = mx::float32;
  int memory_of = -1;
  std::int64_t byte_offset = 0;
};

// Returns the op's output, which is not evaluated yet.
mx::array build(Op op);

// Returns a dispatch of one threadgroup. The kernels:
// - stand_in_add(in, out): out = in + value
// - stand_in_cast<float, 32>(in, out): the same
// - stand_in_add_two(a, b, out): out = a + b
// - stand_in_fill(out): out = value
// - stand_in_nothing(out), stand_in_halves(out) with elements of 16 bits, stand_in_shared(out) with
//   threadgroup memory: these three write nothing
// - stand_in_broken(out): not all lanes reach its barrier
GpuDispatch dispatch_of(std::string_view name, std::vector<GpuOperand> buffers, float value = 0);
mx::array add_value(const mx::array& x, float value);

mx::array ones();
// Returns an array of zeros whose memory keeps its address.
mx::array persistent_memory();

// Waits for the array. Returns the value of all elements, or NaN if they are not all equal.
float value_of(mx::array array);
// Returns the message of what `body` throws, or "".
std::string error_of(const std::function<void()>& body);

// Begins with default options and zero counts, and ends with nothing in flight.
class StandInTest : public testing::Test {
 protected:
  static void SetUpTestSuite();
  void SetUp() override;
  void TearDown() override;

  std::uint64_t expected_idle_closes_ = 0;
};

}  // namespace pagoda::mlx::stand_in
