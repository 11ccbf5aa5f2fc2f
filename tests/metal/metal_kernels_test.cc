// The kernels for Apple GPUs, run as C++ over their ops' cases: near the reference, and bitwise
// whatever the batch of a token and its place in it.
//
// What cannot be seen here is whether Apple's compiler takes them, and how fast they are.
#include <gtest/gtest.h>
#include <mlx/ops.h>
#include <mlx/transforms.h>

#include <cmath>
#include <cstring>

#include "backend/backend.h"
#include "backend/mlx/metal_kernel.h"
#include "backend/mlx/mlx_exec.h"
#include "ops/op_cases.h"
#include "tests/support/metal_emulation.h"

#define threadgroup static

namespace pagoda::mlx {
namespace {

using metal_emulation::Bfloat;
using metal_emulation::Grid;
using metal_emulation::Half;
using metal_emulation::run_grid;
using metal_emulation::Thread;
using metal_emulation::Uint3;

struct EmulatedLaunch {
  const MetalLaunch& launch;
  const std::vector<mx::array>& inputs;  // computed, contiguous
  mx::array& result;

  int constant(std::string_view name) const {
    for (const auto& [key, value] : launch.constants) {
      if (key != name) continue;
      if (const bool* const flag = std::get_if<bool>(&value)) return *flag ? 1 : 0;
      return std::get<int>(value);
    }
    ADD_FAILURE() << "no constant " << name;
    return 0;
  }
  template <typename T>
  const T* input(int i) const {
    return reinterpret_cast<const T*>(inputs[i].data<char>());
  }
  template <typename T>
  T* out() const {
    return reinterpret_cast<T*>(result.data<char>());
  }
  Grid grid() const { return {launch.num_groups_x, launch.num_groups_y, launch.num_threads}; }
};

// Calls `body` with a value of the C++ type that a kernel reads `dtype` as.
template <typename Body>
void with_type(mx::Dtype dtype, Body&& body) {
  if (dtype == mx::float32) return body(float{});
  if (dtype == mx::bfloat16) return body(Bfloat(0));
  ASSERT_EQ(dtype, mx::float16);
  body(Half(0));
}

// Calls `body` with the one of kValues that `value` is, as a constant.
template <int... kValues, typename Body>
void with_constant(int value, Body&& body) {
  const bool is_one =
      ((value == kValues ? (body(std::integral_constant<int, kValues>()), true) : false) || ...);
  EXPECT_TRUE(is_one) << value;
}

// Named as the bodies name what the library gives them.
// NOLINTBEGIN(readability-identifier-naming)
template <typename Out, typename T, int HEAD_DIM>
void emulate_attention(const EmulatedLaunch& launch) {
  constexpr int NUM_GROUPS = 8;
  ASSERT_EQ(launch.constant("NUM_GROUPS"), NUM_GROUPS);
  const int HEADS = launch.constant("HEADS"), KV_HEADS = launch.constant("KV_HEADS");
  const int BLOCK_SIZE = launch.constant("BLOCK_SIZE"), WINDOW = launch.constant("WINDOW");
  const bool HAS_SOFT_CAP = launch.constant("HAS_SOFT_CAP") != 0;
  const bool HAS_SINKS = launch.constant("HAS_SINKS") != 0;
  const Out* const q = launch.input<Out>(0);
  const T* const keys = launch.input<T>(1);
  const T* const values = launch.input<T>(2);
  const int* const positions = launch.input<int>(3);
  const int* const sequences = launch.input<int>(4);
  const int* const tables = launch.input<int>(5);
  const mx::Shape tables_shape = launch.inputs[5].shape();
  const float* const sinks = launch.input<float>(6);
  const float* const settings = launch.input<float>(7);
  Out* const out = launch.out<Out>();
  run_grid(launch.grid(), [&](const Thread& thread) {
    const auto& [threadgroup_position_in_grid, thread_index_in_threadgroup,
                 thread_index_in_simdgroup, simdgroup_index_in_threadgroup] = thread;
#include "ops/attention/attention.metal"
  });
}

template <typename T>
void emulate_apply_penalties(const EmulatedLaunch& launch) {
  constexpr int NUM_THREADS = 256;
  ASSERT_EQ(launch.constant("NUM_THREADS"), NUM_THREADS);
  const T* const logits = launch.input<T>(0);
  const mx::Shape logits_shape = launch.inputs[0].shape();
  const int* const counts = launch.input<int>(1);
  const int* const histogram_of = launch.input<int>(2);
  const float* const repetition = launch.input<float>(3);
  const float* const frequency = launch.input<float>(4);
  const float* const presence = launch.input<float>(5);
  T* const out = launch.out<T>();
  run_grid(launch.grid(), [&](const Thread& thread) {
    const Uint3 threadgroup_position_in_grid = thread.threadgroup_position_in_grid;
    const unsigned thread_index_in_threadgroup = thread.thread_index_in_threadgroup;
#include "ops/apply_penalties/apply_penalties.metal"
  });
}

template <typename Out, typename X, typename T, int ROWS>
void emulate_linear(const EmulatedLaunch& launch) {
  constexpr int NUM_COLS = 4;
  constexpr int NUM_GROUPS = 2;
  ASSERT_EQ(launch.constant("NUM_COLS"), NUM_COLS);
  ASSERT_EQ(launch.constant("NUM_GROUPS"), NUM_GROUPS);
  const int BITS = launch.constant("BITS"), GROUP_SIZE = launch.constant("GROUP_SIZE");
  const X* const x = launch.input<X>(0);
  const mx::Shape x_shape = launch.inputs[0].shape();
  const T* const w = launch.input<T>(1);
  const mx::Shape w_shape = launch.inputs[1].shape();
  const auto* const codes = launch.input<std::uint32_t>(2);
  const mx::Shape codes_shape = launch.inputs[2].shape();
  const float* const scales = launch.input<float>(3);
  const float* const offsets = launch.input<float>(4);
  Out* const out = launch.out<Out>();
  run_grid(launch.grid(), [&](const Thread& thread) {
    const auto& [threadgroup_position_in_grid, thread_index_in_threadgroup,
                 thread_index_in_simdgroup, simdgroup_index_in_threadgroup] = thread;
#include "ops/linear/linear.metal"
  });
}
// NOLINTEND(readability-identifier-naming)

void emulate_attention(const EmulatedLaunch& launch) {
  ASSERT_EQ(launch.inputs[0].dtype(), mx::bfloat16);
  with_type(launch.inputs[1].dtype(), [&](auto t) {
    with_constant<16, 18, 24, 32, 64, 128>(launch.constant("HEAD_DIM"), [&](auto head_dim) {
      emulate_attention<Bfloat, decltype(t), head_dim()>(launch);
    });
  });
}

void emulate_linear(const EmulatedLaunch& launch) {
  ASSERT_EQ(launch.inputs[0].dtype(), mx::bfloat16);
  with_type(launch.launch.dtype, [&](auto out) {
    with_type(launch.inputs[1].dtype(), [&](auto t) {
      with_constant<1, 2, 4, 8>(launch.constant("ROWS"), [&](auto rows) {
        emulate_linear<decltype(out), Bfloat, decltype(t), rows()>(launch);
      });
    });
  });
}

}  // namespace

// Stands in for the library's, which needs an Apple GPU.
mx::array run_metal_kernel(const MetalKernel& kernel, const MetalLaunch& launch) {
  std::vector<mx::array> inputs;
  for (const mx::array& input : launch.inputs) inputs.push_back(mx::contiguous(input));
  mx::eval(inputs);
  std::size_t num_values = 1;
  for (const int extent : launch.shape) num_values *= extent;
  mx::array result(mx::allocator::malloc(num_values * mx::size_of(launch.dtype)), launch.shape,
                   launch.dtype);
  const EmulatedLaunch emulated{launch, inputs, result};
  if (kernel.name == "pagoda_linear") {
    emulate_linear(emulated);
  } else if (kernel.name == "pagoda_attention") {
    emulate_attention(emulated);
  } else {
    EXPECT_EQ(kernel.name, "pagoda_apply_penalties");
    with_type(launch.dtype, [&](auto t) { emulate_apply_penalties<decltype(t)>(emulated); });
  }
  return result;
}

namespace {

using Outputs = std::vector<std::vector<float>>;

std::vector<OpCase> small_cases() {
  std::vector<OpCase> cases;
  for (const OpCase& op_case : all_op_cases()) {
    const bool has_kernel =
        op_case.op == "linear" || op_case.op == "attention" || op_case.op == "apply_penalties";
    if (!op_case.is_large && has_kernel) cases.push_back(op_case);
  }
  return cases;
}

void expect_near(std::span<const float> actual, std::span<const float> expected, float tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  float largest = 0;
  for (const float value : expected) largest = std::max(largest, std::fabs(value));
  for (std::size_t i = 0; i < actual.size(); ++i)
    ASSERT_LE(std::fabs(actual[i] - expected[i]), tolerance * largest) << i;
}

TEST(MetalKernels, AreNearTheReferenceAndBatchInvariant) {
  const auto reference = make_exec({.backend = Backend::kReference}).value();
  MlxExec exec(/*uses_metal_kernels=*/true);
  for (const OpCase& op_case : small_cases()) {
    SCOPED_TRACE(op_case.op + " " + op_case.description);
    const std::vector<int> tokens = all_tokens(op_case);
    const Outputs all = run_case(exec, op_case, tokens).value();
    const Outputs expected = run_case(*reference, op_case, tokens).value();
    ASSERT_EQ(all.size(), expected.size());
    for (std::size_t i = 0; i < all.size(); ++i)
      expect_near(all[i], expected[i], op_case.tolerance.mlx);
    for (const std::size_t count : {1, 3}) {
      if (count >= tokens.size()) continue;
      const std::span<const int> last(tokens.end() - count, tokens.end());
      const Outputs alone = run_case(exec, op_case, last).value();
      for (std::size_t i = 0; i < all.size(); ++i) {
        const auto same =
            take_rows(all[i], static_cast<std::int64_t>(all[i].size() / tokens.size()), last);
        ASSERT_EQ(std::memcmp(alone[i].data(), same.data(), same.size() * sizeof(float)), 0)
            << "the last " << count;
      }
    }
  }
}

}  // namespace
}  // namespace pagoda::mlx
