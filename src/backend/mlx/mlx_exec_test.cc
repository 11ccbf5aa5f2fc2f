#include "backend/mlx/mlx_exec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mlx/primitives.h>
#include <mlx/scheduler.h>

#include <cstring>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "backend/backend.h"
#include "backend/gpu/gpu_op.h"
#include "tensor/read_values.h"
#include "tensor/upload_packet.h"

namespace pagoda::mlx {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

std::vector<float> counting(std::int64_t n) {
  std::vector<float> values(n);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

std::vector<float> read_floats(MlxExec& exec, const Tensor& tensor) {
  const auto bytes = exec.read(tensor);
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  if (!bytes.ok()) return {};
  std::vector<float> values(bytes->size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), bytes->data(), bytes->size());
  return values;
}

// Returns a view's elements, read by the strides that define it.
std::vector<float> elements_of(const Tensor& view, const std::vector<float>& buffer) {
  std::vector<float> values;
  const Shape& shape = view.shape();
  for (std::int64_t i = 0; i < shape.num_elements(); ++i) {
    std::int64_t place = view.offset();
    std::int64_t rest = i;
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      place += rest % shape[axis] * view.stride(axis);
      rest /= shape[axis];
    }
    values.push_back(buffer[place]);
  }
  return values;
}

// Makes an Exec with one thread, because several Execs live at once here.
std::unique_ptr<Exec> make_mlx_exec() {
  return make_exec({.backend = Backend::kMlx, .num_threads = 1}).value();
}

MlxExec& mlx_exec(Exec& exec) {
  return static_cast<MlxExec&>(exec);
}

// Runs an op that applies `function` to each element of x.
template <typename Function>
Tensor map(Exec& exec, const Tensor& x, Function&& function) {
  gpu::GpuOp op{.name = "map", .inputs = {x}, .outputs = {{x.dtype(), x.shape()}}};
  op.host = [function](Exec& host, std::span<const Tensor> in) {
    const Tensor out = host.allocate(DType::kFloat32, in[0].shape());
    const std::vector<float> values =
        elements_of(in[0], {in[0].data<float>() - in[0].offset(),
                            in[0].data<float>() - in[0].offset() + in[0].buffer()->size() / 4});
    for (std::size_t i = 0; i < values.size(); ++i) out.data<float>()[i] = function(values[i]);
    return std::vector<Tensor>{out};
  };
  return gpu::run(exec, std::move(op))[0];
}

Tensor doubled(Exec& exec, const Tensor& x) {
  return map(exec, x, [](float value) { return 2 * value; });
}

// Fails when it is submitted or when it runs, as a test chooses.
class Failing final : public mx::UnaryPrimitive {
 public:
  enum When { kWhenHandedOver, kWhenRun };
  explicit Failing(When when)
      : UnaryPrimitive(mx::default_stream(mx::default_device())), when_(when) {}
  void eval_cpu(const std::vector<mx::array>&, mx::array& out) override {
    if (when_ == kWhenHandedOver) throw std::runtime_error("refused");
    out.set_data(mx::allocator::malloc(out.nbytes()));
    mx::scheduler::enqueue(stream(), [] { throw std::runtime_error("broke down"); });
  }
  void eval_gpu(const std::vector<mx::array>&, mx::array&) override {
    throw std::runtime_error("refused");
  }
  const char* name() const override { return "Failing"; }

 private:
  When when_;
};

Tensor failing(Failing::When when) {
  return tensor_of(mx::array({2}, mx::float32, std::make_shared<Failing>(when), {mx::array(1.0f)}),
                   DType::kFloat32, {2});
}

TEST(MlxExec, ItsMemoryIsItsOwn) {
  const auto made = make_mlx_exec();
  MlxExec& exec = mlx_exec(*made);
  EXPECT_FALSE(exec.writes_in_place());
  const Tensor tensor = exec.upload<float>(std::vector<float>{1}, {1});
  EXPECT_EQ(tensor.buffer()->space(), MemorySpace::kDevice);
  EXPECT_DEATH((void)tensor.data<float>(), "a device's memory is read as the host's");
}

TEST(MlxExecTest, ReadsBackWhatWasUploaded) {
  const auto made = make_mlx_exec();
  MlxExec& exec = mlx_exec(*made);
  const std::vector<float> values = counting(6);
  const Tensor tensor = exec.upload<float>(values, {2, 3});
  EXPECT_THAT(read_floats(exec, tensor), ElementsAreArray(values));
  EXPECT_THAT(read_floats(exec, tensor.slice(0, 1, 2)), ElementsAre(3, 4, 5));
  const std::vector<bf16> halves = {to_bf16(1.5f), to_bf16(-2.0f)};
  const Tensor uploaded = exec.upload<bf16>(halves, {2});
  const auto bytes = exec.read(uploaded);
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ(std::memcmp(bytes->data(), halves.data(), 4), 0);
  EXPECT_EQ(exec.read(exec.upload<float>({}, {0, 3}))->size(), 0u);
  EXPECT_EQ(exec.counters().num_evaluations, 0u) << "values that are there need no evaluation";
}

TEST(MlxExecTest, ViewsReadTheirElements) {
  const auto made = make_mlx_exec();
  MlxExec& exec = mlx_exec(*made);
  const std::vector<float> values = counting(4 * 24);
  const Tensor whole = exec.upload<float>(values, {4, 24});
  const Tensor cube = whole.view({4, 6, 4});
  const Tensor views[] = {
      whole,
      cube,
      whole.view({96}),
      whole.slice(0, 1, 3),                                // rows
      whole.slice(0, 1, 3).view({12, 4}),                  // rows, in another shape
      whole.view({96}).slice(0, 5, 12),                    // from the middle of a row
      whole.slice(1, 8, 20),                               // columns
      whole.slice(1, 8, 20).split_last(3, 4),              // heads of a joined product
      whole.slice(0, 2, 3).slice(1, 3, 9),                 // a part of one row
      whole.slice(0, 3, 4).slice(1, 12, 24).view({3, 4}),  // the same, in another shape
      cube.slice(1, 2, 5),                                 // middle extent
      cube.slice(2, 1, 3),                                 // last extent: not one rectangle
      cube.slice(0, 1, 4).slice(1, 1, 2).slice(2, 0, 2),
      whole.slice(0, 2, 2),  // nothing
  };
  for (const Tensor& view : views) {
    SCOPED_TRACE(to_string(view.shape()));
    const Tensor copied = map(exec, view, [](float value) { return value; });
    EXPECT_EQ(read_floats(exec, copied), elements_of(view, values));
  }
}

TEST(MlxExecTest, AStepIsEvaluatedOnce) {
  const auto made = make_mlx_exec();
  MlxExec& exec = mlx_exec(*made);
  Tensor x = exec.upload<float>(counting(4), {4});
  for (int i = 0; i < 5; ++i) x = doubled(exec, x);
  const Tensor y = doubled(exec, x);
  EXPECT_EQ(exec.counters().num_evaluations, 0u);
  const Tensor roots[] = {x, y};
  ASSERT_TRUE(exec.evaluate(roots).ok());
  EXPECT_THAT(read_floats(exec, y), ElementsAre(0, 64, 128, 192));
  EXPECT_THAT(read_floats(exec, x), ElementsAre(0, 32, 64, 96));
  EXPECT_EQ(exec.counters().num_evaluations, 1u);
  ASSERT_TRUE(exec.evaluate(roots).ok());
  EXPECT_EQ(exec.counters().num_evaluations, 1u) << "everything was there";
  read_floats(exec, doubled(exec, y));
  EXPECT_EQ(exec.counters().num_evaluations, 2u) << "a read that has to evaluate counts";
}

TEST(MlxExecTest, FailuresOfAnEvaluationAreStatuses) {
  const auto made = make_mlx_exec();
  MlxExec& exec = mlx_exec(*made);
  const Tensor refused = failing(Failing::kWhenHandedOver);
  EXPECT_THAT(exec.evaluate(std::span(&refused, 1)).message(), HasSubstr("refused"));
  const Tensor broken = failing(Failing::kWhenRun);
  const Status handed_over = exec.evaluate(std::span(&broken, 1));
  const auto bytes = exec.read(broken);
  EXPECT_THAT(handed_over.message() + bytes.status().message(), HasSubstr("broke down"));
  const Tensor good = doubled(exec, exec.upload<float>(counting(2), {2}));
  ASSERT_TRUE(exec.evaluate(std::span(&good, 1)).ok());
  EXPECT_THAT(read_floats(exec, good), ElementsAre(0, 2));
}

TEST(MlxExecTest, FinishWaitsAndForgetsWhatFailed) {
  const auto made = make_mlx_exec();
  MlxExec& exec = mlx_exec(*made);
  const Tensor good = doubled(exec, exec.upload<float>(counting(2), {2}));
  ASSERT_TRUE(exec.evaluate(std::span(&good, 1)).ok());
  EXPECT_TRUE(exec.finish().ok());
  EXPECT_TRUE(whole_array(good).is_available());
  const Tensor broken = failing(Failing::kWhenRun);
  const Status handed_over = exec.evaluate(std::span(&broken, 1));
  EXPECT_THAT(handed_over.message() + exec.finish().message(), HasSubstr("broke down"));
  EXPECT_TRUE(exec.finish().ok());
  EXPECT_THAT(read_floats(exec, doubled(exec, good)), ElementsAre(0, 4));
}

TEST(MlxExecTest, OutputsBeginAtALine) {
  const auto made = make_mlx_exec();
  MlxExec& exec = mlx_exec(*made);
  for (const int size : {1, 3, 17, 1000}) {
    const Tensor x = exec.upload<float>(counting(size), {size});
    for (const Tensor& tensor : {x, doubled(exec, x)}) {
      const auto address = reinterpret_cast<std::uintptr_t>(exec.read(tensor)->data());
      EXPECT_EQ(address % 64, 0u) << size;
    }
  }
}

TEST(MlxExecTest, LongWorkIsHandedOverBeforeItsEnd) {
  const auto made = make_mlx_exec();
  MlxExec& exec = mlx_exec(*made);
  EXPECT_FALSE(exec.is_due({.dispatches = {}, .flops = 1e9, .bytes = 1e9}));
  EXPECT_TRUE(exec.is_due({.dispatches = {}, .flops = 1e12, .bytes = 0}));
  EXPECT_FALSE(exec.is_due({.dispatches = {}, .flops = 1e9, .bytes = 1e9})) << "counted anew";
  EXPECT_TRUE(exec.is_due({.dispatches = {}, .flops = 0, .bytes = 1e10}));
}

TEST(MlxExecTest, APacketGivesEachItsValues) {
  const auto made = make_mlx_exec();
  MlxExec& exec = mlx_exec(*made);
  const std::vector<std::int32_t> ids = {4, 5, 6};
  const std::vector<float> weights = {0.5f, 1.5f};
  Tensor first, second;
  UploadPacket packet;
  packet.add(ids, first);
  packet.add(weights, second);
  packet.upload(exec);
  const Tensor results[] = {doubled(exec, second), Tensor(), first};
  std::span<const std::byte> values[3];
  ASSERT_TRUE(exec.read_packet(results, values).ok());
  EXPECT_THAT(values_in<float>(values[0]), ElementsAre(1, 3));
  EXPECT_TRUE(values[1].empty());
  EXPECT_THAT(values_in<std::int32_t>(values[2]), ElementsAreArray(ids));
}

TEST(MlxExecTest, PersistentMemoryIsZeroAndStays) {
  const auto made = make_mlx_exec();
  MlxExec& exec = mlx_exec(*made);
  const auto memory = exec.allocate_persistent(DType::kFloat32, {2, 3});
  ASSERT_TRUE(memory.ok());
  EXPECT_THAT(read_floats(exec, *memory), ElementsAre(0, 0, 0, 0, 0, 0));
  const std::byte* address = exec.read(*memory)->data();
  // MLX must not reuse the memory for the result of an op on it, even if the result is dropped.
  read_floats(exec, doubled(exec, *memory));
  EXPECT_EQ(exec.read(*memory)->data(), address);
}

TEST(MlxExecTest, PersistentMemoryRunsOut) {
  const auto made = make_mlx_exec();
  MlxExec& exec = mlx_exec(*made);
  const auto memory = exec.allocate_persistent(DType::kFloat32, {1 << 20, 1 << 20, 1 << 10});
  EXPECT_EQ(memory.status().code(), StatusCode::kResourceExhausted);
}

TEST(MlxExecTest, TheEngineThreadTakesOverAnExecOfTheMainThread) {
  const auto made = make_mlx_exec();
  MlxExec& exec = mlx_exec(*made);
  const Tensor x = exec.upload<float>(counting(4), {4});
  std::vector<float> first;
  std::vector<float> second;
  std::thread([&] { first = read_floats(exec, doubled(exec, x)); }).join();
  std::thread([&] { second = read_floats(exec, doubled(exec, x)); }).join();
  EXPECT_THAT(first, ElementsAre(0, 2, 4, 6));
  EXPECT_EQ(first, second);
  EXPECT_EQ(read_floats(exec, doubled(exec, x)), first);
}

TEST(MlxExecTest, AGraphOfAnotherThreadIsAnError) {
  const auto made = make_mlx_exec();
  MlxExec& exec = mlx_exec(*made);
  const Tensor graph = doubled(exec, exec.upload<float>(counting(4), {4}));
  Status status;
  std::thread([&] { status = exec.evaluate(std::span(&graph, 1)); }).join();
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_THAT(status.message(), HasSubstr("evaluating a step"));
}

TEST(MlxExecTest, EnginesOfTwoThreadsDoNotMeet) {
  const auto work = [](std::vector<float>& result) {
    const auto made = make_mlx_exec();
    MlxExec& exec = mlx_exec(*made);
    Tensor x = exec.upload<float>(std::vector<float>(64, 1.0f), {64});
    for (int step = 0; step < 200; ++step) {
      x = map(exec, doubled(exec, x), [](float value) { return value / 2; });
      ASSERT_TRUE(exec.evaluate(std::span(&x, 1)).ok());
    }
    result = read_floats(exec, x);
  };
  std::vector<float> a;
  std::vector<float> b;
  std::thread first(work, std::ref(a));
  std::thread second(work, std::ref(b));
  first.join();
  second.join();
  EXPECT_EQ(a, std::vector<float>(64, 1.0f));
  EXPECT_EQ(b, a);
}

}  // namespace
}  // namespace pagoda::mlx
