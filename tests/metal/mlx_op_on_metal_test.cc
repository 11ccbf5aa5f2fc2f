// Tests ops of the mlx backend over the stand-in: when their work is submitted, and the result of a
// kernel that fails.
#include "backend/gpu/gpu_op.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "backend/backend.h"
#include "tensor/read_values.h"
#include "tests/metal/stand_in.h"
#include "tests/metal/stand_in_ops.h"

namespace pagoda::mlx {
namespace {

using gpu::GpuOp;
using gpu::input;
using gpu::output;
using stand_in::kCount;

class MlxOpOnMetal : public stand_in::StandInTest {
 protected:
  MlxOpOnMetal() {
    stand_in::configure({});
    exec_ = make_exec({.backend = Backend::kMlx}).value();
    x_ = exec_->upload<float>(std::vector<float>(kCount, 1.0f), {kCount});
    stand_in::reset_counts();
  }

  Tensor add_one(const Tensor& x, double flops) {
    GpuOp op{.name = "add_one", .inputs = {x}, .outputs = {{DType::kFloat32, {kCount}}}};
    op.launch = {.dispatches = {stand_in::dispatch_of("stand_in_add", {input(0), output(0)}, 1)},
                 .flops = flops};
    return run(*exec_, std::move(op))[0];
  }

  std::unique_ptr<Exec> exec_;
  Tensor x_;
};

TEST_F(MlxOpOnMetal, AStepOfShortOpsIsOneCommandBuffer) {
  Tensor x = x_;
  for (int i = 0; i < 200; ++i) x = add_one(x, 1e6);
  EXPECT_EQ(read_values<float>(*exec_, x).value()[0], 201);
  EXPECT_EQ(stand_in::counts().command_buffers, 1u);
  EXPECT_EQ(exec_->counters().num_evaluations, 1u);
}

TEST_F(MlxOpOnMetal, LongOpsAreHandedOverBeforeTheStepsEnd) {
  Tensor x = x_;
  for (int i = 0; i < 12; ++i) x = add_one(x, 5e10);  // three ops exceed the bound
  EXPECT_EQ(read_values<float>(*exec_, x).value()[0], 13);
  EXPECT_EQ(stand_in::counts().command_buffers, 4u);
}

TEST_F(MlxOpOnMetal, AnErrorOfAnEarlyHandOverIsTheEvaluations) {
  GpuOp op{.name = "unknown", .outputs = {{DType::kFloat32, {kCount}}}};
  op.launch = {.dispatches = {stand_in::dispatch_of("stand_in_unknown", {output(0)})},
               .flops = 1e12};
  const Tensor unknown = run(*exec_, std::move(op))[0];
  const Status status = exec_->evaluate({&unknown, 1});
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), ::testing::HasSubstr("stand_in_unknown"));
}

TEST_F(MlxOpOnMetal, AKernelThatFailsIsTheDevicesEnd) {
  GpuOp op{.name = "broken", .outputs = {{DType::kFloat32, {kCount}}}};
  op.launch.dispatches = {stand_in::dispatch_of("stand_in_broken", {output(0)})};
  const Tensor broken = run(*exec_, std::move(op))[0];
  const Status handed_over = exec_->evaluate({&broken, 1});
  const Status status = handed_over.ok() ? exec_->read(broken).status() : handed_over;
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);  // an engine ends on this code
  EXPECT_THAT(status.message(), ::testing::HasSubstr("stand_in_broken"));
}

}  // namespace
}  // namespace pagoda::mlx
