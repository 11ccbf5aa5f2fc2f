#include "backend/native_exec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "backend/backend.h"
#include "tensor/upload_packet.h"

namespace pagoda {
namespace {

class NativeExecTest : public ::testing::TestWithParam<Backend> {
 protected:
  std::unique_ptr<Exec> exec_ = make_exec({.backend = GetParam(), .num_threads = 2}).value();
};

TEST_P(NativeExecTest, ReadGivesWhatUploadTook) {
  std::vector<std::int32_t> values(12);
  std::iota(values.begin(), values.end(), 5);
  const Tensor tensor = exec_->upload<std::int32_t>(values, {3, 4});
  values[0] = -1;  // the bytes were copied
  const std::span<const std::byte> bytes = exec_->read(tensor.slice(0, 1, 3)).value();
  ASSERT_EQ(bytes.size(), 32u);
  EXPECT_EQ(reinterpret_cast<const std::int32_t*>(bytes.data())[0], 9);
}

TEST_P(NativeExecTest, PersistentMemoryIsZero) {
  const Tensor tensor = exec_->allocate_persistent(DType::kBFloat16, {10, 1000}).value();
  for (const bf16 value : tensor.span<bf16>()) ASSERT_EQ(value.bits, 0);
}

TEST_P(NativeExecTest, MoreMemoryThanThereIsIsRefused) {
  const Result<Tensor> tensor =
      exec_->allocate_persistent(DType::kFloat32, {std::int64_t{1} << 20, std::int64_t{1} << 24});
  EXPECT_EQ(tensor.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(tensor.status().message(),
              ::testing::HasSubstr("expected 70368744177664 bytes free"));
}

TEST_P(NativeExecTest, WritesPersistentMemoryInPlace) {
  ASSERT_TRUE(exec_->writes_in_place());
  const Tensor tensor = exec_->allocate_persistent(DType::kInt32, {2, 3}).value();
  EXPECT_EQ(tensor.buffer()->space(), MemorySpace::kHost);
  const std::vector<std::int32_t> values = {7, 8};
  exec_->write<std::int32_t>(tensor, 2, values);
  EXPECT_THAT(tensor.span<std::int32_t>(), ::testing::ElementsAre(0, 0, 7, 8, 0, 0));
  EXPECT_DEATH(exec_->write<std::int32_t>(tensor, 5, values), "past a tensor's end");
}

TEST_P(NativeExecTest, APacketIsOneBlockOfMemory) {
  const std::vector<std::int32_t> ids = {4, 5, 6};
  const std::vector<float> weights = {0.5f, 1.5f};
  Tensor first, second, none;
  UploadPacket packet;
  packet.add(ids, first);
  packet.add(std::span<const float>(weights), {1, 2}, second);
  packet.add(std::vector<float>(), none);
  packet.upload(*exec_);
  EXPECT_THAT(first.span<std::int32_t>(), ::testing::ElementsAreArray(ids));
  EXPECT_THAT(second.span<float>(), ::testing::ElementsAreArray(weights));
  EXPECT_EQ(second.shape(), (Shape{1, 2}));
  EXPECT_EQ(none.num_elements(), 0);
  EXPECT_EQ(first.buffer().get(), second.buffer().get());
  EXPECT_EQ(second.first_byte() - first.first_byte(), 64);
  const Tensor results[] = {second, Tensor(), first};
  std::span<const std::byte> values[3];
  ASSERT_TRUE(exec_->read_packet(results, values).ok());
  EXPECT_EQ(values[0].data(), second.first_byte());
  EXPECT_TRUE(values[1].empty());
  EXPECT_EQ(values[2].size(), 12u);
  EXPECT_TRUE(exec_->finish().ok());
}

TEST_P(NativeExecTest, EvaluatesNothingLater) {
  const Tensor tensor = exec_->upload<float>(std::vector<float>{1}, {1});
  EXPECT_TRUE(exec_->evaluate({&tensor, 1}).ok());
  EXPECT_EQ(exec_->counters().num_evaluations, 0u);
}

TEST_P(NativeExecTest, TensorsOutliveTheirExec) {
  const Tensor tensor = exec_->upload<float>(std::vector<float>{1, 2, 3}, {3});
  exec_.reset();
  EXPECT_EQ(tensor.span<float>()[2], 3.0f);
}

INSTANTIATE_TEST_SUITE_P(Backends, NativeExecTest,
                         ::testing::Values(Backend::kReference, Backend::kCpu),
                         [](const auto& info) { return std::string(backend_name(info.param)); });

TEST(MakeExec, TheBestOneIsThere) {
  const auto exec = make_best_exec({.backend = Backend::kReference});
  ASSERT_TRUE(exec.ok()) << exec.status().message();
  EXPECT_TRUE((*exec)->backend() == Backend::kCpu || backend_has_gpu((*exec)->backend()));
}

TEST(MakeExec, RefusesAnAbsurdNumberOfThreads) {
  for (const int num_threads : {-1, 100'000}) {
    const auto exec = make_exec({.backend = Backend::kCpu, .num_threads = num_threads});
    EXPECT_EQ(exec.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(exec.status().message(), ::testing::HasSubstr("expected 1 to 256 threads"));
  }
}

TEST(MakeExec, ABackendThatIsNotBuiltSaysSo) {
  for (const Backend backend : kBackends) {
    if (backend_is_built(backend)) continue;
    const auto exec = make_exec({.backend = backend});
    EXPECT_EQ(exec.status().code(), StatusCode::kUnsupported);
    EXPECT_EQ(exec.status().message(),
              fmt::format("[device] {}: not built into this binary", backend_name(backend)));
  }
}

TEST(MakeExec, KeepsToTheThreadsAskedFor) {
  EXPECT_EQ(make_exec({.backend = Backend::kCpu, .num_threads = 3}).value()->num_threads(), 3);
  EXPECT_GE(make_exec({.backend = Backend::kCpu}).value()->num_threads(), 1);
}

}  // namespace
}  // namespace pagoda
