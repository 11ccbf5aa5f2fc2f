#include "tensor/op_profile.h"

#include <gtest/gtest.h>

#include <thread>

namespace pagoda {
namespace {

constexpr OpCall kGateUp = {.op = "linear", .format = "Q4_1", .rows = 3072, .cols = 576};

OpCall with_cost(OpCall call, double read_bytes, double products) {
  call.read_bytes = read_bytes;
  call.products = products;
  return call;
}

TEST(OpProfile, SumsCallsThatRunAlike) {
  OpProfile profile;
  profile.begin_step(StepPhase::kDecode);
  profile.add(with_cost(kGateUp, 100, 7), 0.5);
  profile.add(with_cost(kGateUp, 20, 1), 0.25);
  const auto ops = profile.ops();
  ASSERT_EQ(ops.size(), 1u);
  EXPECT_EQ(ops[0].num_calls, 2);
  EXPECT_EQ(ops[0].seconds, 0.75);
  EXPECT_EQ(ops[0].call.read_bytes, 120);
  EXPECT_EQ(ops[0].call.products, 8);
  EXPECT_EQ(ops[0].call.format, "Q4_1");
}

TEST(OpProfile, KeepsApartWhatDiffersInAnything) {
  OpProfile profile;
  profile.begin_step(StepPhase::kPrefill);
  profile.add(kGateUp, 1);
  profile.add({.op = "gather_rows", .format = "Q4_1", .rows = 3072, .cols = 576}, 1);
  profile.add({.op = "linear", .format = "Q8_0", .rows = 3072, .cols = 576}, 1);
  profile.add({.op = "linear", .format = "Q4_1", .rows = 576, .cols = 576}, 1);
  profile.add({.op = "linear", .format = "Q4_1", .rows = 3072, .cols = 1536}, 1);
  EXPECT_EQ(profile.ops().size(), 5u);
  profile.begin_step(StepPhase::kDecode);
  profile.add(kGateUp, 1);
  EXPECT_EQ(profile.ops().size(), 6u);
}

TEST(OpProfile, ListsPrefillFirstAndTheLongestFirst) {
  OpProfile profile;
  profile.begin_step(StepPhase::kDecode);
  profile.add({.op = "a"}, 9);
  profile.begin_step(StepPhase::kPrefill);
  profile.add({.op = "b"}, 1);
  profile.add({.op = "c"}, 2);
  std::string order;
  for (const OpTotals& totals : profile.ops()) order += totals.call.op;
  EXPECT_EQ(order, "cba");
}

TEST(OpProfile, CountsOnlyStepsThatEnd) {
  OpProfile profile;
  profile.begin_step(StepPhase::kDecode);
  profile.begin_step(StepPhase::kDecode);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  profile.end_step();
  EXPECT_EQ(profile.phase(StepPhase::kDecode).num_steps, 1);
  EXPECT_GE(profile.phase(StepPhase::kDecode).seconds, 0.002);
  EXPECT_EQ(profile.phase(StepPhase::kPrefill).num_steps, 0);
}

// Carries a profile or none, and computes nothing.
class IdleExec : public Exec {
 public:
  IdleExec() : Exec(Backend::kReference) {}
  Tensor allocate(DType, const Shape&) override { return {}; }
  Result<Tensor> allocate_persistent(DType, const Shape&) override { return Tensor(); }
  Tensor upload(DType, const Shape&, std::span<const std::byte>) override { return {}; }
  Status evaluate(std::span<const Tensor>) override { return ok_status(); }
  Result<std::span<const std::byte>> read(const Tensor&) override {
    return std::span<const std::byte>();
  }
};

TEST(OpTimer, AsksNothingWithoutAProfile) {
  IdleExec exec;
  bool asked = false;
  {
    const OpTimer timer(exec, [&] {
      asked = true;
      return kGateUp;
    });
  }
  EXPECT_FALSE(asked);
}

TEST(OpTimer, AddsTheTimeOfItsBlock) {
  IdleExec exec;
  const auto profile = std::make_shared<OpProfile>();
  exec.set_profile(profile);
  {
    const OpTimer timer(exec, [] { return with_cost(kGateUp, 5, 6); });
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    EXPECT_TRUE(profile->ops().empty());
  }
  const auto ops = profile->ops();
  ASSERT_EQ(ops.size(), 1u);
  EXPECT_GE(ops[0].seconds, 0.002);
  EXPECT_EQ(ops[0].call.read_bytes, 5);
  EXPECT_EQ(ops[0].call.products, 6);
}

// Measures ops on a clock of its own, as a device does.
class DeviceExec final : public IdleExec {
 public:
  std::uint64_t begin_op() override { return 7; }
  void end_op(std::uint64_t begun, const OpCall& call) override {
    profile()->add(call, static_cast<double>(begun));
  }
};

TEST(OpTimer, TakesTheTimeOfTheExec) {
  DeviceExec exec;
  exec.set_profile(std::make_shared<OpProfile>());
  {
    const OpTimer timer(exec, [] { return kGateUp; });
  }
  ASSERT_EQ(exec.profile()->ops().size(), 1u);
  EXPECT_EQ(exec.profile()->ops()[0].seconds, 7);
}

TEST(OpProfile, ForgetsAtClear) {
  OpProfile profile;
  profile.begin_step(StepPhase::kDecode);
  profile.add(kGateUp, 1);
  profile.end_step();
  profile.clear();
  EXPECT_TRUE(profile.ops().empty());
  EXPECT_EQ(profile.phase(StepPhase::kDecode).num_steps, 0);
}

}  // namespace
}  // namespace pagoda
