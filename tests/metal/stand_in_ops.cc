#include "tests/metal/stand_in_ops.h"

#include <mlx/allocator.h>
#include <mlx/primitives.h>
#include <mlx/stream.h>
#include <mlx/transforms.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "backend/mlx/metal_dispatch.h"
#include "tests/metal/emulator/lane.h"
#include "tests/metal/emulator/signature.h"
#include "tests/metal/stand_in.h"

namespace pagoda::mlx::stand_in {
namespace {

struct Kernels {
  using Arguments = emulator::ThreadArguments;

  static const AddParameters& parameters(const Arguments& arguments) {
    return *reinterpret_cast<const AddParameters*>(arguments.parameters);
  }
  template <typename Body>
  static void for_elements(const Arguments& arguments, Body&& body) {
    for (int i = static_cast<int>(arguments.thread); i < parameters(arguments).count; i += 32)
      body(i);
  }

  // out = in + value
  static void add(const Arguments& arguments) {
    const auto* const in = reinterpret_cast<const float*>(arguments.buffers[0]);
    auto* const out = reinterpret_cast<float*>(arguments.buffers[1]);
    for_elements(arguments, [&](int i) { out[i] = in[i] + parameters(arguments).value; });
  }
  // out = a + b
  static void add_two(const Arguments& arguments) {
    const auto* const a = reinterpret_cast<const float*>(arguments.buffers[0]);
    const auto* const b = reinterpret_cast<const float*>(arguments.buffers[1]);
    auto* const out = reinterpret_cast<float*>(arguments.buffers[2]);
    for_elements(arguments, [&](int i) { out[i] = a[i] + b[i]; });
  }
  // out = value
  static void fill(const Arguments& arguments) {
    auto* const out = reinterpret_cast<float*>(arguments.buffers[0]);
    for_elements(arguments, [&](int i) { out[i] = parameters(arguments).value; });
  }
  static void nothing(const Arguments&) {}
  // A kernel with an error: not all lanes reach the barrier.
  static void broken(const Arguments& arguments) {
    if (arguments.lane == 0) emulator::simdgroup_barrier();
  }
};

void register_kernels() {
  using emulator::BufferType;
  constexpr BufferType kIn = {.is_const = true, .element_size = sizeof(float)};
  constexpr BufferType kOut = {.is_const = false, .element_size = sizeof(float)};
  const auto add = [](const char* name, const char* arguments, std::vector<BufferType> buffers,
                      void (*call)(const emulator::ThreadArguments&), bool has_shared = false) {
    emulator::register_kernel({.name = name,
                               .arguments = arguments,
                               .buffers = buffers.data(),
                               .num_buffers = buffers.size(),
                               .parameter_bytes = sizeof(AddParameters),
                               .has_shared = has_shared,
                               .is_traced = false,
                               .call = call});
  };
  add("stand_in_add", "", {kIn, kOut}, &Kernels::add);
  add("stand_in_add_two", "", {kIn, kIn, kOut}, &Kernels::add_two);
  add("stand_in_fill", "", {kOut}, &Kernels::fill);
  add("stand_in_nothing", "", {kOut}, &Kernels::nothing);
  add("stand_in_shared", "", {kOut}, &Kernels::nothing, /*has_shared=*/true);
  add("stand_in_halves", "", {{.is_const = false, .element_size = 2}}, &Kernels::nothing);
  add("stand_in_broken", "", {kOut}, &Kernels::broken);
  add("stand_in_cast", "float, 32", {kIn, kOut}, &Kernels::add);
}

class LaunchOp final : public mx::Primitive {
 public:
  LaunchOp(GpuLaunch launch, int memory_of, std::int64_t byte_offset)
      : mx::Primitive(mx::default_stream(mx::default_device())),
        launch_(std::move(launch)),
        memory_of_(memory_of),
        byte_offset_(byte_offset) {}

  void eval_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    mx::array& out = outputs[0];
    if (memory_of_ >= 0) {
      out.copy_shared_buffer(inputs[memory_of_]);
    } else {
      out.set_data(mx::allocator::malloc(out.nbytes()));
    }
    std::vector<MetalInput> places;
    for (const mx::array& input : inputs) places.push_back({&input, byte_offset_});
    dispatch_launch(stream(), launch_, places, outputs);
  }
  void eval_gpu(const std::vector<mx::array>&, std::vector<mx::array>&) override {}
  const char* name() const override { return "launch"; }

 private:
  GpuLaunch launch_;
  int memory_of_;
  std::int64_t byte_offset_;
};

}  // namespace

extern const GpuSource kSource = {"stand_in",
                                  "// The emulator's kernels are registered as they are."};
extern const GpuSource kOtherSource = {"stand_in", "// Another text."};
extern const GpuSource kNotAscii = {"stand_in", "// \xc3\xa4"};

mx::array build(Op op) {
  GpuLaunch launch{.dispatches = std::move(op.dispatches),
                   .scratch_bytes = std::move(op.scratch_bytes)};
  auto primitive = std::make_shared<LaunchOp>(std::move(launch), op.memory_of, op.byte_offset);
  return mx::array({kCount}, op.dtype, std::move(primitive), std::move(op.inputs));
}

GpuDispatch dispatch_of(std::string_view name, std::vector<GpuOperand> buffers, float value) {
  return {.function = {&kSource, name},
          .buffers = std::move(buffers),
          .parameters = AddParameters{kCount, value}};
}

mx::array add_value(const mx::array& x, float value) {
  return build(
      {.dispatches = {dispatch_of("stand_in_add", {input(0), output(0)}, value)}, .inputs = {x}});
}

mx::array ones() {
  return mx::array(std::vector<float>(kCount, 1.0f).data(), {kCount}, mx::float32);
}

mx::array persistent_memory() {
  mx::array memory(
      mx::allocator::Data(mx::allocator::allocator().malloc(kCount * sizeof(float)),
                          [](mx::allocator::Buffer b) { mx::allocator::allocator().free(b); }),
      {kCount}, mx::float32);
  std::fill_n(memory.data<float>(), kCount, 0.0f);
  return memory;
}

float value_of(mx::array array) {
  close_window();
  array.wait();
  const float first = array.data<float>()[0];
  for (int i = 1; i < kCount; ++i) {
    if (array.data<float>()[i] != first) return std::nanf("");
  }
  return first;
}

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

void StandInTest::SetUpTestSuite() {
  static const bool is_done = (register_kernels(), true);
  EXPECT_TRUE(is_done);
}

void StandInTest::SetUp() {
  EXPECT_TRUE(metal_is_available());
  configure({});
  reset_counts();
}

void StandInTest::TearDown() {
  close_window();
  mx::synchronize();
  EXPECT_EQ(counts().idle_closes, expected_idle_closes_);
}

}  // namespace pagoda::mlx::stand_in
