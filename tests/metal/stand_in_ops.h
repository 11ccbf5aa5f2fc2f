// Ops for tests of the stand-in: plain functions as kernels, and a primitive of MLX's, so that nothing
// but metal_dispatch.cc and MLX itself is between a launch and the stand-in.
#pragma once

#include <gtest/gtest.h>
#include <mlx/array.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/mlx/metal_launch.h"

namespace pagoda::mlx::stand_in {

namespace mx = ::mlx::core;

constexpr int kCount = 64;  // elements of every array

// The parameters of every kernel here.
struct AddParameters {
  int count;
  float value;
};

extern const MetalSource kSource;
extern const MetalSource kOtherSource;
extern const MetalSource kNotAscii;

// An op that writes its only output, of kCount elements, which is the memory of an input if
// `memory_of` says so. Its inputs begin at the offset.
struct Op {
  std::vector<MetalDispatch> dispatches;
  std::vector<mx::array> inputs;
  std::vector<std::size_t> scratch_bytes = {};
  mx::Dtype dtype = mx::float32;
  int memory_of = -1;
  std::int64_t byte_offset = 0;
};

// Returns the op's output, not evaluated.
mx::array build(Op op);

// Returns a dispatch of one threadgroup. The kernels:
// - stand_in_add(in, out): out = in + value
// - stand_in_cast<float, 32>(in, out): the same
// - stand_in_add_two(a, b, out): out = a + b
// - stand_in_fill(out): out = value
// - stand_in_nothing(out), stand_in_halves(out) of 16 bits, stand_in_shared(out) of threadgroup memory:
//   none of them writes
// - stand_in_broken(out): not all lanes reach its barrier
MetalDispatch dispatch_of(std::string_view name, std::vector<MetalOperand> buffers,
                          float value = 0);
mx::array add_value(const mx::array& x, float value);

mx::array ones();
// Returns memory that stays in its place, of zeros.
mx::array persistent_memory();

// Waits for the array. Returns the value that all elements have; NaN if they are not one.
float value_of(mx::array array);
// Returns the message of what `body` throws, or "".
std::string error_of(const std::function<void()>& body);

// Begins with no options and no counts, and ends with nothing in flight.
class StandInTest : public testing::Test {
 protected:
  static void SetUpTestSuite();
  void SetUp() override;
  void TearDown() override;

  std::uint64_t expected_idle_closes_ = 0;
};

}  // namespace pagoda::mlx::stand_in
