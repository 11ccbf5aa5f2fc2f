// Refusals of the stand-in for MLX's Metal device.
#include <gtest/gtest.h>
#include <mlx/backend/metal/device.h>
#include <mlx/stream.h>
#include <mlx/transforms.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/mlx/metal_dispatch.h"
#include "tests/metal/stand_in_ops.h"

namespace pagoda::mlx::stand_in {
namespace {

class RefusalTest : public StandInTest {
 protected:
  void expect_refusal(GpuDispatch dispatch, std::string_view why) {
    expect_refusal(Op{.dispatches = {std::move(dispatch)}, .inputs = {ones()}}, why);
  }
  void expect_refusal(Op op, std::string_view why) {
    const mx::array before = add_value(ones(), 1);
    mx::async_eval({before});
    const std::string error = error_of([&] { mx::async_eval({build(std::move(op))}); });
    EXPECT_NE(error.find(why), std::string::npos) << "got: " << error;
    EXPECT_EQ(error.find('\n'), std::string::npos);
    EXPECT_EQ(value_of(before), 2);  // the dispatch recorded before has run
    const mx::array after = add_value(ones(), 2);
    mx::async_eval({after});
    EXPECT_EQ(value_of(after), 3);
  }
};

TEST_F(RefusalTest, BuffersThatAreNotTheKernels) {
  const auto add = [](std::vector<GpuOperand> buffers) {
    return dispatch_of("stand_in_add", std::move(buffers));
  };
  expect_refusal(add({output(0), input(0)}), "stand_in_add: buffer 0 is bound to be written");
  expect_refusal(add({input(0), input(0)}), "stand_in_add: buffer 1 is bound to be read");
  expect_refusal(add({input(0)}), "parameters are bound to index 1, not 2");
  expect_refusal(add({input(0), output(0), output(0)}), "a buffer is bound to index 2");
  expect_refusal(
      Op{.dispatches = {add({input(0), output(0)})}, .inputs = {ones()}, .dtype = mx::float16},
      "buffer 1 has elements of 4 bytes, the array of 2");
}

TEST_F(RefusalTest, ResultsOfAnotherType) {
  const mx::array halves = build({.dispatches = {dispatch_of("stand_in_halves", {output(0)})},
                                  .inputs = {},
                                  .dtype = mx::bfloat16});
  expect_refusal(
      Op{.dispatches = {dispatch_of("stand_in_add", {input(0), output(0)})}, .inputs = {halves}},
      "buffer 0 has elements of 4 bytes, the array of 2");
}

// An upload is one array with tensors of all types, so its own type means nothing.
TEST_F(RefusalTest, DataOfTheHostHasNoType) {
  const mx::array bytes(std::vector<std::uint8_t>(kCount * sizeof(float)).data(),
                        {kCount * static_cast<int>(sizeof(float))}, mx::uint8);
  const mx::array sum = add_value(bytes, 1);
  mx::async_eval({sum});
  EXPECT_EQ(value_of(sum), 1);
}

TEST_F(RefusalTest, PlacesOutsideOfAnArray) {
  const auto at = [](std::int64_t byte_offset) {
    return Op{.dispatches = {dispatch_of("stand_in_add", {input(0), output(0)})},
              .inputs = {ones()},
              .byte_offset = byte_offset};
  };
  expect_refusal(at(-4), "buffer 0 begins at byte -4 of 256");
  expect_refusal(at(260), "buffer 0 begins at byte 260 of 256");
  expect_refusal(at(256), "buffer 0 has 0 bytes, less than an element");
  expect_refusal(at(2), "buffer 0 is not aligned to its elements of 4 bytes");
}

TEST_F(RefusalTest, Grids) {
  const auto grid = [](int num_groups, int num_threads) {
    GpuDispatch dispatch = dispatch_of("stand_in_add", {input(0), output(0)});
    dispatch.num_groups = {num_groups, 1, 1};
    dispatch.num_threads = num_threads;
    return dispatch;
  };
  expect_refusal(grid(1, 1056), "a threadgroup of 1056 x 1 x 1 threads");
  expect_refusal(grid(1, 48), "a threadgroup of 48 x 1 x 1 threads");
  expect_refusal(grid(1, 0), "a threadgroup of 0 x 1 x 1 threads");
}

TEST_F(RefusalTest, ThreadgroupMemory) {
  const auto shared = [](std::string_view name, int bytes) {
    GpuDispatch dispatch = dispatch_of(name, {output(0)});
    dispatch.threadgroup_bytes = bytes;
    return dispatch;
  };
  expect_refusal(shared("stand_in_shared", 32769), "32784 bytes of threadgroup memory");
  expect_refusal(shared("stand_in_shared", 0), "the kernel takes some");
  expect_refusal(shared("stand_in_nothing", 16), "the kernel takes none");
  mx::async_eval({build({.dispatches = {shared("stand_in_shared", 32768)}, .inputs = {}})});
}

TEST_F(RefusalTest, Parameters) {
  GpuDispatch dispatch = dispatch_of("stand_in_add", {input(0), output(0)});
  dispatch.parameters = 1;
  expect_refusal(dispatch, "4 bytes of parameters, the kernel has 8");
  dispatch.parameters = GpuParameters();
  expect_refusal(dispatch, "index 2 is not bound");
}

TEST_F(RefusalTest, Functions) {
  GpuDispatch dispatch = dispatch_of("stand_in_add", {input(0), output(0)});
  build_pipeline(dispatch.function);
  dispatch.function.source = &kOtherSource;
  expect_refusal(dispatch, "stand_in_add: two functions have this name, and other texts");
  dispatch.function = {&kNotAscii, "stand_in_not_ascii"};
  expect_refusal(dispatch, "stand_in_not_ascii: its text is not ASCII");
  dispatch.function = {&kSource, "stand_in_add", {"bfloat", "128"}};
  expect_refusal(dispatch, "stand_in_add_bfloat_128: is not among the emulator's kernels");
}

TEST_F(RefusalTest, AnIndexThatIsBoundTwice) {
  const mx::array x = ones();
  auto& encoder = mx::metal::get_command_encoder(mx::default_stream(mx::default_device()));
  auto& device = mx::metal::device(mx::Device::gpu);
  MTL::Library* const library =
      device.get_library("stand_in_add", [] { return std::string(kSource.text); });
  encoder.set_compute_pipeline_state(device.get_kernel("stand_in_add", library));
  encoder.set_input_array(x, 0);
  encoder.set_input_array(x, 0);
  const std::string error =
      error_of([&] { encoder.dispatch_threadgroups(MTL::Size(1, 1, 1), MTL::Size(32, 1, 1)); });
  EXPECT_EQ(error, "[metal] stand_in_add: index 0 is bound twice");
}

}  // namespace
}  // namespace pagoda::mlx::stand_in
