// Tests the stand-in for MLX's Metal device: which dispatches it keeps in order, when its windows
// close, and its counts.
#include "tests/metal/stand_in.h"

#include <gtest/gtest.h>
#include <mlx/ops.h>
#include <mlx/transforms.h>

#include <cmath>
#include <cstdint>
#include <semaphore>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "backend/mlx/metal_dispatch.h"
#include "tests/metal/stand_in_ops.h"
#include "tests/metal/stand_in_rules.h"

namespace pagoda::mlx::stand_in {
namespace {

class OrderTest : public StandInTest {
 protected:
  static void configure(int dispatches_per_encoder, std::uint64_t seed) {
    stand_in::configure(
        {.limits = {.dispatches_per_encoder = dispatches_per_encoder}, .seed = seed});
  }
};

TEST_F(OrderTest, AReadComesAfterItsWrite) {
  for (const int dispatches_per_encoder : {1, 7, 1000}) {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      configure(dispatches_per_encoder, seed);
      mx::array left = ones();
      mx::array right = ones();
      for (int i = 0; i < 30; ++i) {
        left = add_value(left, 1);
        right = add_value(right, 2);
      }
      const mx::array sum =
          build({.dispatches = {dispatch_of("stand_in_add_two", {input(0), input(1), output(0)})},
                 .inputs = {left, right}});
      mx::async_eval({sum});
      EXPECT_EQ(value_of(sum), 92);
    }
  }
}

TEST_F(OrderTest, AWriteComesAfterAWrite) {
  for (const int dispatches_per_encoder : {1, 7, 1000}) {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      configure(dispatches_per_encoder, seed);
      mx::array memory = persistent_memory();
      for (int i = 0; i < 20; ++i) {
        memory =
            build({.dispatches = {dispatch_of("stand_in_fill", {output(0)}, static_cast<float>(i))},
                   .inputs = {memory},
                   .memory_of = 0});
        mx::async_eval({memory});
      }
      EXPECT_EQ(value_of(memory), 19);
    }
  }
}

TEST_F(OrderTest, ScratchStaysInItsEncoder) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    configure(1, seed);
    mx::array x = ones();
    for (int i = 0; i < 10; ++i) {
      x = build(
          {.dispatches = {dispatch_of("stand_in_add", {input(0), scratch(0)}, 1),
                          dispatch_of("stand_in_add", {scratch(0), scratch(1)}, 1),
                          dispatch_of("stand_in_add_two", {scratch(0), scratch(1), output(0)})},
           .inputs = {x},
           .scratch_bytes = {kCount * sizeof(float), kCount * sizeof(float)}});
    }
    mx::async_eval({x});
    EXPECT_EQ(value_of(x), 4093);  // 2 x + 3, ten times
  }
}

struct ReadAndWrite {
  mx::array read;
  mx::array written;
};

// Returns a read of memory, and a write to the same memory that is recorded after the read.
ReadAndWrite read_and_write() {
  const mx::array memory = persistent_memory();
  const mx::array read = add_value(memory, 0);
  const mx::array written = build({.dispatches = {dispatch_of("stand_in_fill", {output(0)}, 5)},
                                   .inputs = {memory, read},
                                   .memory_of = 0});
  return {read, written};
}

// MLX has no fence between a read and a later encoder's write. So the owner of the memory must not
// write what a step in flight reads.
TEST_F(OrderTest, AWriteMayComeBeforeAReadOfAnEarlierEncoder) {
  std::set<float> seen;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    configure(1, seed);
    const auto [read, written] = read_and_write();
    mx::async_eval({written});
    EXPECT_EQ(value_of(written), 5);
    seen.insert(value_of(read));
  }
  EXPECT_EQ(seen, (std::set<float>{0, 5}));
}

TEST_F(OrderTest, AWriteMayComeBeforeAReadOfAnEarlierEvaluation) {
  std::set<float> seen;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    configure(1000, seed);
    const auto [read, written] = read_and_write();
    mx::async_eval({read});
    mx::async_eval({written});
    EXPECT_EQ(value_of(written), 5);
    seen.insert(value_of(read));
  }
  EXPECT_EQ(seen, (std::set<float>{0, 5}));
}

TEST_F(OrderTest, AWriteComesAfterAReadOfItsEncoder) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    configure(1000, seed);
    const auto [read, written] = read_and_write();
    mx::async_eval({written});
    EXPECT_EQ(value_of(written), 5);
    EXPECT_EQ(value_of(read), 0);
  }
}

TEST_F(OrderTest, WithoutShufflingThingsRunAsRecorded) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    stand_in::configure(
        {.limits = {.dispatches_per_encoder = 1}, .seed = seed, .is_shuffled = false});
    const auto [read, written] = read_and_write();
    mx::async_eval({written});
    EXPECT_EQ(value_of(written), 5);
    EXPECT_EQ(value_of(read), 0);
  }
}

TEST(EncoderRulesTest, EncodersWaitForWritersButNotOfScratch) {
  stand_in::EncoderRules rules({.dispatches_per_encoder = 1});
  const int a = 0, b = 0, temporary = 0;
  using Uses = std::vector<stand_in::Use>;
  const auto place = [&](const Uses& uses) {
    rules.begin_operation();
    return rules.place_dispatch(uses);
  };
  EXPECT_EQ(place({{&a, 1, true}, {&temporary, 1, true, true}}).encoder, 1);
  EXPECT_TRUE(place({{&b, 1, true}, {&temporary, 1, false, true}}).waits.empty());
  EXPECT_EQ(place({{&a, 1, false}, {&b, 1, false}}).waits, (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(place({{&a, 1, true}}).waits, (std::vector<std::uint64_t>{1}));  // not 3: it only reads
  EXPECT_EQ(place({{&a, 1, false}}).waits, (std::vector<std::uint64_t>{4}));
  EXPECT_EQ(rules.counts().encoders, 5);
  EXPECT_EQ(rules.counts().barriers, 0);
}

// Tests of MLX's own operations and waits.

TEST_F(StandInTest, OperationsOfMlxKeepTheirPlace) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    stand_in::configure({.seed = seed});
    mx::array x = ones();
    for (int i = 0; i < 10; ++i) x = mx::add(add_value(add_value(x, 1), 1), mx::array(1.0f));
    mx::async_eval({x});
    EXPECT_EQ(value_of(x), 31);
  }
  const Counts counts = stand_in::counts();
  EXPECT_EQ(counts.foreign_inputs, 90);  // all inputs except the first
  EXPECT_EQ(counts.foreign_bytes, 90 * kCount * sizeof(float));
}

TEST_F(StandInTest, ABlockingEvaluationEnds) {
  mx::array x = ones();
  for (int i = 0; i < 100; ++i) x = add_value(x, 1);
  mx::eval({x});
  EXPECT_EQ(x.data<float>()[0], 101);
  EXPECT_EQ(stand_in::counts().windows, 100);
}

TEST_F(StandInTest, AnEvaluationThatStandsStillClosesTheWindow) {
  stand_in::configure({.window_size = 100000});
  mx::array x = ones();
  for (int i = 0; i < 500; ++i) x = add_value(x, 1);
  mx::async_eval({x});
  EXPECT_EQ(value_of(x), 501);
  EXPECT_GT(stand_in::counts().windows, 1);
}

TEST_F(StandInTest, AnotherThreadClosesTheWindow) {
  mx::array x = ones();
  std::binary_semaphore is_evaluated(0);
  std::binary_semaphore is_read(0);
  std::thread thread([&] {
    x = add_value(x, 1);
    mx::async_eval({x});
    is_evaluated.release();
    is_read.acquire();
  });
  is_evaluated.acquire();
  EXPECT_EQ(value_of(x), 2);
  is_read.release();
  thread.join();
}

TEST_F(StandInTest, AThreadsEndClosesItsWindow) {
  mx::array x = ones();
  std::thread thread([&] {
    x = add_value(x, 1);
    mx::async_eval({x});
  });
  thread.join();
  x.wait();
  EXPECT_EQ(x.data<float>()[0], 2);
}

TEST_F(StandInTest, AWindowThatNobodyClosesRunsAndIsCounted) {
  mx::array x = add_value(ones(), 1);
  mx::async_eval({x});
  x.wait();
  EXPECT_EQ(x.data<float>()[0], 2);
  expected_idle_closes_ = 1;
}

TEST_F(StandInTest, ABrokenKernelIsTheEvaluationsError) {
  mx::array x = build({.dispatches = {dispatch_of("stand_in_broken", {output(0)})}, .inputs = {}});
  std::string error = error_of([&] {
    mx::async_eval({x});
    (void)value_of(x);
  });
  EXPECT_NE(error.find("stand_in_broken"), std::string::npos) << error;
  EXPECT_NE(error.find("dispatch 0 of 1 in a window of seed 1"), std::string::npos) << error;
  const mx::array after = add_value(ones(), 2);
  error = error_of([&] {
    mx::async_eval({after});
    EXPECT_EQ(value_of(after), 3);
  });
  EXPECT_EQ(error, "");
}

TEST_F(StandInTest, WhatIsNotWrittenIsPoison) {
  mx::array x = build({.dispatches = {dispatch_of("stand_in_nothing", {output(0)})}, .inputs = {}});
  mx::array integers = build({.dispatches = {dispatch_of("stand_in_nothing", {output(0)})},
                              .inputs = {},
                              .dtype = mx::int32});
  mx::async_eval({x, integers});
  stand_in::close_window();
  x.wait();
  integers.wait();
  for (int i = 0; i < kCount; ++i) {
    EXPECT_TRUE(std::isnan(x.data<float>()[i]));
    EXPECT_EQ(integers.data<std::int32_t>()[i], static_cast<std::int32_t>(0xa5a5a5a5));
  }
}

// Tests of the counts.

TEST_F(StandInTest, CountsOfAChain) {
  stand_in::configure({.limits = {.max_ops = 50}});  // MLX's limit on many GPUs
  mx::array x = ones();
  for (int i = 0; i < 100; ++i) x = add_value(x, 1);
  mx::async_eval({x});
  EXPECT_EQ(value_of(x), 101);
  const Counts counts = stand_in::counts();
  EXPECT_EQ(counts.dispatches, 100);
  EXPECT_EQ(counts.windows, 3);          // 48, 48, 4
  EXPECT_EQ(counts.command_buffers, 2);  // MLX commits after the 51st
  EXPECT_EQ(counts.encoders, 2);
  EXPECT_EQ(counts.barriers, 98);  // before each dispatch except an encoder's first
  EXPECT_EQ(counts.foreign_inputs, 0);
  EXPECT_EQ(counts.bound_bytes, 100 * 2 * kCount * sizeof(float));
}

TEST_F(StandInTest, CountsOfIndependentDispatches) {
  stand_in::configure({.limits = {.dispatches_per_encoder = 7}});
  const mx::array x = ones();
  std::vector<mx::array> sums;
  for (int i = 0; i < 20; ++i) sums.push_back(add_value(x, static_cast<float>(i)));
  mx::async_eval(sums);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(value_of(sums[i]), static_cast<float>(i + 1));
  const Counts counts = stand_in::counts();
  EXPECT_EQ(counts.dispatches, 20);
  EXPECT_EQ(counts.barriers, 0);
  EXPECT_EQ(counts.encoders, 3);
  EXPECT_EQ(counts.command_buffers, 1);
}

TEST_F(StandInTest, EveryEvaluationHasItsCommandBuffer) {
  mx::array x = ones();
  for (int i = 0; i < 3; ++i) {
    x = add_value(x, 1);
    mx::async_eval({x});
  }
  EXPECT_EQ(value_of(x), 4);
  EXPECT_EQ(stand_in::counts().command_buffers, 3);
  EXPECT_EQ(stand_in::counts().windows, 1);
}

TEST_F(StandInTest, LargeInputsEndACommandBuffer) {
  stand_in::configure({.limits = {.max_megabytes = 0}});
  const mx::array large = mx::array(std::vector<float>(1 << 20).data(), {1 << 20}, mx::float32);
  std::vector<mx::array> sums;
  for (int i = 0; i < 4; ++i) sums.push_back(add_value(large, 1));
  mx::async_eval(sums);
  EXPECT_EQ(value_of(sums[3]), 1);
  EXPECT_EQ(stand_in::counts().command_buffers, 4);
}

TEST_F(StandInTest, PipelinesBuiltAheadAreNotLate) {
  const GpuFunction function = {&kSource, "stand_in_cast", {"float", "32"}};
  EXPECT_EQ(function.binary_name(), "stand_in_cast_float_32");
  EXPECT_NE(function.text().find("template [[host_name(\"stand_in_cast_float_32\")]] [[kernel]] "
                                 "decltype(stand_in_cast<float, 32>) stand_in_cast<float, 32>;"),
            std::string::npos);
  build_pipeline(function);
  build_pipeline(function);
  EXPECT_EQ(stand_in::counts().libraries, 1);
  const std::uint64_t late = num_late_pipelines();
  mx::async_eval({build({.dispatches = {{.function = function,
                                         .buffers = {input(0), output(0)},
                                         .parameters = AddParameters{kCount, 1}}},
                         .inputs = {ones()}})});
  EXPECT_EQ(num_late_pipelines(), late);
}

}  // namespace
}  // namespace pagoda::mlx::stand_in
