// Tests CudaExec over a fake driver (tests/cuda/fake_driver.h): what is recorded, when it runs, what
// waits for what, and what happens if a call of the driver fails.
#include "backend/cuda/cuda_exec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <limits>

#include "tensor/read_values.h"
#include "tests/cuda/fake_driver.h"
#include "tests/support/temporary_folder.h"

namespace pagoda::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

constexpr int kCount = 4;  // elements of a tensor

struct AddParameters {
  int count;
  float value;
};

const gpu::GpuSource kSource = {"test", "// device code\n"};

// Returns a dispatch of out = x + value.
gpu::GpuDispatch add_dispatch(float value) {
  return {.function = {&kSource, "add"},
          .buffers = {gpu::input(0), gpu::output(0)},
          .parameters = AddParameters{kCount, value}};
}

void add_on_host(const FakeLaunch& launch) {
  AddParameters parameters;
  std::memcpy(&parameters, launch.argument.data() + parameters_begin(2), sizeof(parameters));
  const auto* const x = reinterpret_cast<const float*>(launch.buffer(0));
  auto* const out = reinterpret_cast<float*>(launch.buffer(1));
  for (int i = 0; i < parameters.count; ++i) out[i] = x[i] + parameters.value;
}

Tensor add(Exec& exec, const Tensor& x, float value, int memory_of = gpu::kFresh) {
  gpu::GpuOp op{.name = "add", .inputs = {x}, .outputs = {{DType::kFloat32, {kCount}, memory_of}}};
  op.launch.dispatches = {add_dispatch(value)};
  return gpu::run(exec, std::move(op))[0];
}

std::vector<float> values_of(Exec& exec, const Tensor& tensor) {
  const auto values = read_values<float>(exec, tensor).value();
  return {values.begin(), values.end()};
}

class CudaExecTest : public ::testing::Test {
 protected:
  CudaExecTest() { driver_.kernels["pagoda_add"] = add_on_host; }

  Result<std::unique_ptr<CudaExec>> make(const std::string& folder = "") {
    PAGODA_ASSIGN_OR_RETURN(std::shared_ptr<Device> device, Device::open(driver_.table()));
    return CudaExec::create(std::move(device), compiler_, folder);
  }
  static Tensor upload(Exec& exec, float first) {
    return exec.upload<float>(std::vector<float>{first, first + 1, first + 2, first + 3}, {kCount});
  }

  FakeDriver driver_;
  std::shared_ptr<FakeCompiler> compiler_ = std::make_shared<FakeCompiler>();
};

TEST_F(CudaExecTest, ReadsBackWhatWasUploadedAndComputed) {
  const auto exec = make().value();
  const Tensor x = upload(*exec, 1);
  const Tensor y = add(*exec, add(*exec, x, 10), 100);
  EXPECT_THAT(values_of(*exec, x), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(values_of(*exec, y), ElementsAre(111, 112, 113, 114));
  EXPECT_EQ(exec->counters().num_evaluations, 1u);
}

TEST_F(CudaExecTest, AKernelGetsAViewsFirstElement) {
  const auto exec = make().value();
  const Tensor all = exec->upload<float>(std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}, {8});
  EXPECT_THAT(values_of(*exec, add(*exec, all.slice(0, 3, 7), 1)), ElementsAre(5, 6, 7, 8));
}

TEST_F(CudaExecTest, AnOutputMayBeAnInputsMemory) {
  const auto exec = make().value();
  const Tensor kept = exec->allocate_persistent(DType::kFloat32, {kCount}).value();
  const Tensor once = add(*exec, kept, 1, /*memory_of=*/0);
  const Tensor twice = add(*exec, once, 1, /*memory_of=*/0);
  EXPECT_EQ(once.buffer().get(), kept.buffer().get());
  EXPECT_THAT(values_of(*exec, twice), ElementsAre(2, 2, 2, 2));
}

TEST_F(CudaExecTest, NothingRunsBeforeEvaluate) {
  const auto exec = make().value();
  const Tensor y = add(*exec, upload(*exec, 1), 1);
  EXPECT_EQ(driver_.num_launches(), 0u);
  ASSERT_TRUE(exec->evaluate({&y, 1}).ok());
  EXPECT_EQ(driver_.num_launches(), 1u);
  EXPECT_GT(driver_.num_waiting(), 0u);  // it does not wait for the GPU
}

TEST_F(CudaExecTest, AReadWaitsForNothingBehindIt) {
  const auto exec = make().value();
  const Tensor first = add(*exec, upload(*exec, 1), 1);
  ASSERT_TRUE(exec->evaluate({&first, 1}).ok());
  const Tensor second = add(*exec, first, 1);
  ASSERT_TRUE(exec->evaluate({&second, 1}).ok());
  EXPECT_THAT(values_of(*exec, first), ElementsAre(2, 3, 4, 5));
  EXPECT_EQ(driver_.num_waiting(), 2u);  // the second launch, and its event
  EXPECT_THAT(values_of(*exec, second), ElementsAre(3, 4, 5, 6));
}

TEST_F(CudaExecTest, APacketIsReadTogether) {
  const auto exec = make().value();
  const Tensor tensors[] = {upload(*exec, 1), Tensor(), add(*exec, upload(*exec, 2), 5)};
  std::span<const std::byte> values[3];
  ASSERT_TRUE(exec->read_packet(tensors, values).ok());
  EXPECT_EQ(values_in<float>(values[0])[3], 4);
  EXPECT_TRUE(values[1].empty());
  EXPECT_EQ(values_in<float>(values[2])[0], 7);
}

TEST_F(CudaExecTest, PartsOfABufferKeepTheirValues) {
  const auto exec = make().value();
  const Tensor all = exec->upload<float>(std::vector<float>{1, 2, 3, 4, 5, 6}, {6});
  const Tensor parts[] = {all.slice(0, 0, 3), all.slice(0, 3, 6)};
  std::span<const std::byte> values[2];
  ASSERT_TRUE(exec->read_packet(parts, values).ok());
  EXPECT_EQ(values_in<float>(values[0])[0], 1);
  EXPECT_EQ(values_in<float>(values[1])[0], 4);
  const auto first = read_values<float>(*exec, parts[0]).value();
  EXPECT_THAT(values_of(*exec, all), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(first[2], 3);
}

TEST_F(CudaExecTest, AWriteIsSeenByWhatComesBehindItAlone) {
  const auto exec = make().value();
  const Tensor kept = exec->allocate_persistent(DType::kFloat32, {kCount}).value();
  const Tensor before = add(*exec, kept, 0);
  exec->write<float>(kept, 1, std::vector<float>{7, 8});
  const Tensor behind = add(*exec, kept, 0);
  EXPECT_THAT(values_of(*exec, before), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(values_of(*exec, behind), ElementsAre(0, 7, 8, 0));
}

TEST_F(CudaExecTest, APartIsFilledFromZeros) {
  const auto exec = make().value();
  const Tensor kept = exec->allocate_persistent(DType::kInt32, {6}).value();
  ASSERT_TRUE(exec->fill(kept, 2, 3, [](std::uint32_t* values) { values[1] = 5; }).ok());
  const auto values = read_values<std::int32_t>(*exec, kept).value();
  EXPECT_THAT(std::vector<std::int32_t>(values.begin(), values.end()),
              ElementsAre(0, 0, 0, 5, 0, 0));
}

TEST_F(CudaExecTest, SteadyStepsTakeNoMoreMemory) {
  const auto exec = make().value();
  std::size_t after_a_few = 0;
  for (int step = 0; step < 64; ++step) {  // chunks whose results are not read
    const Tensor y = add(*exec, upload(*exec, static_cast<float>(step)), 1);
    ASSERT_TRUE(exec->evaluate({&y, 1}).ok());
    if (step == 8) after_a_few = driver_.num_allocations();
    EXPECT_LE(driver_.num_waiting(), 16u);  // a bounded number of steps is on its way
  }
  EXPECT_EQ(driver_.num_allocations(), after_a_few);
}

TEST_F(CudaExecTest, AStepThatComesAgainIsAGraph) {
  const auto exec = make().value();
  for (int step = 0; step < 32; ++step) {
    const Tensor y = add(*exec, add(*exec, upload(*exec, static_cast<float>(step)), 1), 2);
    EXPECT_THAT(values_of(*exec, y)[0], step + 3) << step;
  }
  EXPECT_GE(exec->num_graph_launches(), 24u);
  EXPECT_LE(driver_.num_launches(), 2u * 8u);  // those of first steps, and of captures
}

TEST_F(CudaExecTest, GraphsAreTurnedOffByTheEnvironment) {
  setenv("PAGODA_CUDA_GRAPHS", "off", 1);
  const auto exec = make().value();
  unsetenv("PAGODA_CUDA_GRAPHS");
  for (int step = 0; step < 4; ++step) {
    EXPECT_THAT(values_of(*exec, add(*exec, upload(*exec, 1), 1)), ElementsAre(2, 3, 4, 5));
  }
  EXPECT_EQ(exec->num_graph_launches(), 0u);
  EXPECT_EQ(driver_.num_launches(), 4u);
}

TEST_F(CudaExecTest, NoGraphHoldsACopyToPersistentMemory) {
  const auto exec = make().value();
  for (int time = 0; time < 16; ++time) {  // weights that come and go, in the same place
    const Tensor kept = exec->allocate_persistent(DType::kInt32, {kCount}).value();
    ASSERT_TRUE(exec->fill(kept, 0, kCount, [](std::uint32_t* values) { values[0] = 7; }).ok());
    EXPECT_EQ(read_values<std::int32_t>(*exec, kept).value()[0], 7);
  }
  EXPECT_EQ(exec->num_graph_launches(), 0u);
}

TEST_F(CudaExecTest, FewGraphsAreKept) {
  const auto exec = make().value();
  const Tensor x = upload(*exec, 0);
  for (int value = 0; value < 100; ++value) {
    for (int time = 0; time < 3; ++time)
      EXPECT_EQ(values_of(*exec, add(*exec, x, static_cast<float>(value)))[0], value);
  }
  EXPECT_GE(exec->num_graph_launches(), 190u);
  EXPECT_LE(driver_.num_graphs(), 64u);
}

TEST_F(CudaExecTest, ARecordedLaunchHoldsPersistentMemory) {
  const auto exec = make().value();
  Tensor kept = exec->allocate_persistent(DType::kFloat32, {kCount}).value();
  const Tensor y = add(*exec, kept, 3);
  kept = Tensor();
  EXPECT_THAT(values_of(*exec, y), ElementsAre(3, 3, 3, 3));
}

TEST_F(CudaExecTest, AnOpWithoutRowsLaunchesNothing) {
  const auto exec = make().value();
  gpu::GpuOp op{
      .name = "add", .inputs = {upload(*exec, 1)}, .outputs = {{DType::kFloat32, {0, kCount}}}};
  op.launch.dispatches = {add_dispatch(1)};
  op.launch.dispatches[0].num_groups = {0, 1, 1};
  const Tensor out = gpu::run(*exec, std::move(op))[0];
  EXPECT_TRUE(exec->read(out).value().empty());
  EXPECT_EQ(driver_.num_launches(), 0u);
}

TEST_F(CudaExecTest, AGridBeyondTheDevicesIsOurMistake) {
  const auto exec = make().value();
  gpu::GpuOp op{
      .name = "add", .inputs = {upload(*exec, 1)}, .outputs = {{DType::kFloat32, {kCount}}}};
  op.launch.dispatches = {add_dispatch(1)};
  op.launch.dispatches[0].num_groups = {1, 65536, 1};
  EXPECT_DEATH(gpu::run(*exec, std::move(op)), "at most 65535 groups in y and z");
}

TEST_F(CudaExecTest, MissingMemoryFailsTheStepThatAskedForIt) {
  const auto exec = make().value();
  gpu::GpuOp op{.name = "add",
                .inputs = {upload(*exec, 1)},
                .outputs = {{DType::kFloat32, {std::int64_t{1} << 40}}}};
  op.launch.dispatches = {add_dispatch(1)};
  const Tensor y = gpu::run(*exec, std::move(op))[0];
  const Status status = exec->evaluate({&y, 1});
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("allocating 4398046511104 bytes on the GPU"));
  EXPECT_THAT(values_of(*exec, add(*exec, upload(*exec, 1), 1)), ElementsAre(2, 3, 4, 5));
}

// Prepares a kernel, fills a weight and computes two steps.
Status live(Result<std::unique_ptr<CudaExec>> made) {
  PAGODA_RETURN_IF_ERROR(made.status());
  CudaExec& exec = **made;
  PAGODA_ASSIGN_OR_RETURN(const Tensor kept, exec.allocate_persistent(DType::kInt32, {kCount}));
  PAGODA_RETURN_IF_ERROR(exec.fill(kept, 0, kCount, [](std::uint32_t*) {}));
  const auto call_ops = [&] { add(exec, exec.upload<float>(std::vector<float>(4), {4}), 1); };
  PAGODA_RETURN_IF_ERROR(exec.prepare_kernels(call_ops, {}));
  for (int step = 0; step < 4; ++step) {  // the last ones as graphs
    const Tensor y = add(exec, exec.upload<float>(std::vector<float>(4), {4}), 1);
    PAGODA_RETURN_IF_ERROR(exec.evaluate({&y, 1}));
    PAGODA_RETURN_IF_ERROR(exec.read(y).status());
  }
  return exec.finish();
}

TEST_F(CudaExecTest, EachCallOfTheDriverMayFail) {
  ASSERT_TRUE(live(make()).ok());
  // The last two are the destructor's, which waits for both streams and returns no error.
  const int num_calls = driver_.num_calls() - 2;
  EXPECT_GT(num_calls, 20);
  for (int n = 1; n <= num_calls; ++n) {
    driver_.fail_call(n);
    const Status status = live(make());
    EXPECT_EQ(status.code(), StatusCode::kUnavailable) << "call " << n;
    EXPECT_THAT(status.message(), HasSubstr("a failure that the test asked for")) << "call " << n;
  }
  driver_.fail_call(0);
  EXPECT_TRUE(live(make()).ok());
}

TEST_F(CudaExecTest, KernelsAreCompiledBeforeTheFirstStep) {
  const auto exec = make().value();
  const auto call_ops = [&] { add(*exec, add(*exec, upload(*exec, 1), 1), 2); };
  std::vector<double> shares;
  ASSERT_TRUE(exec->prepare_kernels(call_ops, [&](double share) { shares.push_back(share); }).ok());
  EXPECT_EQ(compiler_->num_compiled(), 1);
  EXPECT_THAT(shares, ElementsAre(1.0));
  EXPECT_EQ(driver_.num_launches(), 0u);
  EXPECT_THAT(values_of(*exec, add(*exec, upload(*exec, 1), 1)), ElementsAre(2, 3, 4, 5));
  EXPECT_EQ(exec->counters().num_late_kernels, 0u);
}

TEST_F(CudaExecTest, ALateKernelIsCounted) {
  const auto exec = make().value();
  (void)add(*exec, upload(*exec, 1), 1);
  EXPECT_EQ(exec->counters().num_late_kernels, 1u);
}

TEST_F(CudaExecTest, BinariesAreKeptAndForgedOnesAreNot) {
  const TemporaryFolder folder;
  const auto run_once = [&] {
    const auto exec = make(folder.path()).value();
    EXPECT_THAT(values_of(*exec, add(*exec, upload(*exec, 1), 1)), ElementsAre(2, 3, 4, 5));
  };
  run_once();
  run_once();
  EXPECT_EQ(compiler_->num_compiled(), 1);
  for (const auto& file : std::filesystem::directory_iterator(folder.path())) {
    std::ofstream(file.path(), std::ios::app) << "torn";
  }
  run_once();
  EXPECT_EQ(compiler_->num_compiled(), 2);
}

TEST(CudaDevice, IsNamedAndRefusedInWords) {
  {
    FakeDriver driver({.major = 8, .minor = 6});
    EXPECT_EQ((*Device::open(driver.table()))->architecture(), "sm_86");
  }
  {
    FakeDriver driver({.major = 9, .minor = 0});
    EXPECT_EQ((*Device::open(driver.table()))->architecture(), "sm_90a");
  }
  {
    FakeDriver driver({.major = 7, .minor = 5});
    EXPECT_THAT(Device::open(driver.table()).status().message(),
                HasSubstr("expected a GPU of compute capability 8.0 or later, got Fake GPU"));
  }
  FakeDriver driver({.num_devices = 0});
  EXPECT_THAT(Device::open(driver.table()).status().message(),
              HasSubstr("[device] cuda: expected an NVIDIA GPU, got none"));
}

TEST(KernelText, LosesAddressSpacesAndKeepsNames) {
  static const gpu::GpuSource source = {
      "shift",
      "constant int kTable[2] = {1, 2};\n"
      "template <int kWide>\n"
      "[[kernel]] void shift(device const float* x [[buffer(0)]], constant P& p [[buffer(1)]],\n"
      "                      threadgroup float* shared [[threadgroup(0)]]) {\n"
      "  thread float held[4]; int my_device = 0, thread_id = 1; threadgroup_barrier(f);\n"
      "}\n"};
  const KernelShape kernel = {.function = {&source, "shift", {"4"}},
                              .num_buffers = 1,
                              .parameter_bytes = 12,
                              .num_threads = 256};
  EXPECT_EQ(cuda_text(kernel),
            "const int kTable[2] = {1, 2};\n"
            "template <int kWide>\n"
            "[[kernel]] void shift(const float* x [[buffer(0)]], const P& p [[buffer(1)]],\n"
            "                      float* shared [[threadgroup(0)]]) {\n"
            "  float held[4]; int my_device = 0, thread_id = 1; threadgroup_barrier(f);\n"
            "}\n"
            "\n#include <entry.h>\n"
            "extern \"C\" __global__ void __launch_bounds__(256) pagoda_shift_4(\n"
            "    const __grid_constant__ KernelArguments<1, 12> arguments) {\n"
            "  call_kernel<&shift<4>>(arguments);\n"
            "}\n");
  EXPECT_EQ(argument_bytes(1, 12), 32u);
}

}  // namespace
}  // namespace pagoda::cuda
