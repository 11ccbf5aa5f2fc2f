// Tests that the emulator finds errors that a GPU does not report, and computes a GPU's results.
#include "tests/metal/emulator/emulator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace pagoda::emulator {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr std::size_t kLineFloats = 32;

const EmulatedKernel& kernel_named(std::string_view name, bool traced = true) {
  const EmulatedKernel* const kernel = find_kernel(name, traced);
  if (kernel == nullptr) throw std::invalid_argument("no kernel " + std::string(name));
  return *kernel;
}

template <typename T>
BufferBinding bind(std::vector<T>& values) {
  return {reinterpret_cast<std::byte*>(values.data()), values.size() * sizeof(T)};
}

std::span<const std::byte> parameters_of(const int& n) {
  return std::as_bytes(std::span(&n, 1));
}

// Returns some numbers whose sum depends on the order of addition.
std::vector<float> some_floats(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = std::ldexp(static_cast<float>(i * 2654435761u % 1000) - 500.0f,
                           static_cast<int>(i * 7 % 20) - 10);
  return values;
}

struct Mistake {
  std::string kernel;
  std::string found;      // a text in the error message
  bool is_traced = true;  // false: every build finds it
  bool is_fresh = false;  // whether the output is fresh
};

std::ostream& operator<<(std::ostream& out, const Mistake& mistake) {
  return out << mistake.kernel;
}

class MistakeTest : public ::testing::TestWithParam<Mistake> {
 protected:
  // Runs two threadgroups of 64 threads. Returns the error, if any.
  static std::optional<std::string> error_of(const std::string& kernel, bool traced,
                                             std::uint64_t seed) {
    alignas(16) static float x[64];
    std::vector<float> out(128);
    const int n = 64;
    BufferBinding output = bind(out);
    output.is_fresh = GetParam().is_fresh;
    try {
      run_kernel(kernel_named(kernel, traced),
                 {.buffers = {{reinterpret_cast<std::byte*>(x), sizeof(x)}, output},
                  .parameters = parameters_of(n),
                  .num_groups = {2, 1, 1},
                  .num_threads = 64,
                  .threadgroup_bytes = 256},
                 {.seed = seed});
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return std::nullopt;
  }
};

TEST_P(MistakeTest, IsFoundWhateverTheOrder) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    for (const bool traced : {true, false}) {
      if (!traced && GetParam().is_traced) continue;
      const auto error = error_of(GetParam().kernel + "_0", traced, seed);
      ASSERT_TRUE(error) << "seed " << seed;
      EXPECT_THAT(*error, HasSubstr(GetParam().found)) << "seed " << seed;
      EXPECT_THAT(*error, HasSubstr(GetParam().kernel + "_0: threadgroup ("));
    }
  }
}

TEST_P(MistakeTest, IsNotSeenWhereThereIsNone) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    for (const bool traced : {true, false})
      EXPECT_EQ(error_of(GetParam().kernel + "_1", traced, seed), std::nullopt);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, MistakeTest,
    ::testing::Values(
        Mistake{"read_unwritten", "reads 4 bytes that nobody has written: byte 20 of threadgroup"},
        Mistake{"read_of_earlier_threadgroup", "that nobody has written"},
        Mistake{"race_of_simd_groups", "with no barrier between"},
        Mistake{"write_behind_read", "with no barrier between"},
        Mistake{"race_of_lanes", "with nothing between"},
        Mistake{"same_word_of_lanes", "writes 4 bytes that lane"},
        Mistake{"race_of_threadgroups", "writes 4 bytes that another threadgroup has written"},
        Mistake{"read_of_other_threadgroup", "another threadgroup"},
        Mistake{"barrier_of_other_memory", "with no barrier between"},
        Mistake{"barrier_of_some", "a threadgroup's barrier that not all", false},
        Mistake{"two_barriers", "a threadgroup's barrier that not all", false},
        Mistake{"sum_of_some_lanes", "lanes of a SIMD group part ways", false},
        Mistake{"two_sums", "lanes of a SIMD group part ways", false},
        Mistake{"shuffle_from_nowhere", "a shuffle from a lane", false},
        Mistake{"load_outside", "of buffer 0, 256 bytes long"},
        Mistake{"load_before", "reads 4 bytes outside of what is bound; nearest: byte -"},
        Mistake{"wide_load_outside", "reads 16 bytes outside"},
        Mistake{"store_outside", "writes 4 bytes outside of what is bound"},
        Mistake{"threadgroup_store_outside", "of threadgroup memory, 256 bytes long"},
        Mistake{"parameters_outside", "of the parameters, 4 bytes long"},
        Mistake{"stack_outside", "outside of what is bound"},
        Mistake{"array_outside", "an index outside of an array"},
        Mistake{"signed_overflow", "a signed product that overflows"},
        Mistake{"float_that_is_no_integer", "a float that no integer of the type is"},
        Mistake{"division_by_zero", "a division by zero"},
        Mistake{"misaligned_load", "reads 16 bytes that are not aligned: byte 4 of buffer 0"},
        Mistake{"store_to_input", "writes 4 bytes that are only read: byte"},
        Mistake{"read_of_fresh_output", "that nobody has written", true, true},
        Mistake{"bytes_of_a_word", "writes 1 bytes that another threadgroup has written"},
        Mistake{"matrix_of_many", "lanes of a SIMD group part ways", false},
        Mistake{"atomic_and_plain", "that"}),
    [](const auto& info) { return info.param.kernel; });

TEST(EmulatorTest, ShufflesTheOrderOfThreadsByItsSeed) {
  const auto order = [](std::uint64_t seed, bool traced) {
    std::vector<unsigned> next(1), out(256);
    const int n = 0;
    run_kernel(kernel_named("note_order", traced),
               {.buffers = {bind(next), bind(out)},
                .parameters = parameters_of(n),
                .num_groups = {4, 1, 1},
                .num_threads = 64},
               {.seed = seed});
    return out;
  };
  std::vector<unsigned> sorted = order(1, true);
  EXPECT_EQ(sorted, order(1, true));
  EXPECT_EQ(sorted, order(1, false));
  EXPECT_NE(sorted, order(2, true));
  EXPECT_FALSE(std::is_sorted(sorted.begin(), sorted.begin() + 32));
  std::sort(sorted.begin(), sorted.end());
  for (unsigned i = 0; i < 256; ++i) ASSERT_EQ(sorted[i], i);
}

TEST(EmulatorTest, FindsARaceThroughMemoryThatIsBoundTwice) {
  std::vector<float> x(64), out(64);
  const EmulatedKernel& kernel = kernel_named("read_of_other_half");
  const auto run = [&](std::vector<float>& output, const int& distance) {
    run_kernel(kernel, {.buffers = {bind(x), bind(output)},
                        .parameters = parameters_of(distance),
                        .num_groups = {2, 1, 1}});
  };
  EXPECT_NO_THROW(run(out, 32));
  EXPECT_NO_THROW(run(x, 0));
  EXPECT_THROW(run(x, 32), std::runtime_error);
  EXPECT_THROW(run(x, 1), std::runtime_error);
  EXPECT_NO_THROW(run(x, 0)) << "of the run that failed nothing may be left";
}

TEST(EmulatorTest, RunsNothingOverNoGroups) {
  std::vector<float> x(64), out(64, 1.0f);
  const int n = 0;
  const Counts counts = run_kernel(
      kernel_named("read_of_other_half"),
      {.buffers = {bind(x), bind(out)}, .parameters = parameters_of(n), .num_groups = {2, 0, 1}},
      {.counts = true});
  EXPECT_THAT(out, Each(1.0f));
  EXPECT_EQ(counts.buffers.at(0).bytes_loaded, 0);
}

TEST(EmulatorTest, RunsOnThreadsAtOnce) {
  std::vector<std::thread> threads;
  std::array<std::vector<float>, 4> outs;
  for (std::vector<float>& out : outs) {
    threads.emplace_back([&out] {
      std::vector<float> x = some_floats(64);
      out.resize(64);
      const int n = 32;
      for (std::uint64_t seed = 0; seed < 100; ++seed)
        run_kernel(kernel_named("read_of_other_half", seed % 2 == 0),
                   {.buffers = {bind(x), bind(out)},
                    .parameters = parameters_of(n),
                    .num_groups = {2, 1, 1}},
                   {.seed = seed});
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<float>& out : outs) EXPECT_EQ(out, outs[0]);
  EXPECT_EQ(outs[0][0], some_floats(64)[32]);
}

TEST(EmulatorTest, ReducesASimdGroup) {
  std::vector<float> x = some_floats(32);
  std::vector<int> integers(32);
  std::iota(integers.begin(), integers.end(), -7);
  const int n = 3;
  std::vector<float> sums;
  for (const SumOrder order : {SumOrder::kNeighbours, SumOrder::kHalves}) {
    std::vector<float> out(160);
    std::vector<int> out_integers(160);
    run_kernel(kernel_named("reduce_lanes"),
               {.buffers = {bind(x), bind(integers), bind(out), bind(out_integers)},
                .parameters = parameters_of(n)},
               {.sum_order = order});
    int before = 0;
    for (std::size_t lane = 0; lane < 32; ++lane) {
      EXPECT_EQ(out[lane], out[0]);
      EXPECT_EQ(out[32 + lane], *std::max_element(x.begin(), x.end()));
      EXPECT_EQ(out[64 + lane], *std::min_element(x.begin(), x.end()));
      EXPECT_EQ(out[96 + lane], x[lane ^ 5]);
      EXPECT_EQ(out[128 + lane], x[7]);
      EXPECT_EQ(out_integers[lane], 16 * (-7 + 24));
      EXPECT_EQ(out_integers[32 + lane], 24);
      EXPECT_EQ(out_integers[64 + lane], before);
      EXPECT_EQ(out_integers[96 + lane], 1);
      EXPECT_EQ(out_integers[128 + lane], 0);
      before += integers[lane];
    }
    sums.push_back(out[0]);
  }
  std::vector<float> neighbours = x;
  for (std::size_t count = 16; count > 0; count /= 2)
    for (std::size_t i = 0; i < count; ++i)
      neighbours[i] = neighbours[2 * i] + neighbours[2 * i + 1];
  EXPECT_EQ(sums[0], neighbours[0]);
  EXPECT_NE(sums[0], sums[1]);
}

TEST(EmulatorTest, MultipliesMatricesInEitherOrder) {
  std::vector<float> a = some_floats(64), b = some_floats(8 * 12);
  const int n = 12;
  const auto product = [&](MatrixOrder order) {
    std::vector<float> out(64);
    run_kernel(kernel_named("multiply_matrices"),
               {.buffers = {bind(a), bind(b), bind(out)}, .parameters = parameters_of(n)},
               {.matrix_order = order});
    return out;
  };
  const std::vector<float> ascending = product(MatrixOrder::kAscending);
  const std::vector<float> pairs = product(MatrixOrder::kPairs);
  const std::vector<float> by_place = product(MatrixOrder::kByPlace);
  for (std::size_t row = 0; row < 8; ++row) {
    for (std::size_t column = 0; column < 8; ++column) {
      const std::size_t i = row * 8 + column;
      float chain = 1;
      double sum = 1, size = 1;
      for (std::size_t k = 0; k < 8; ++k) {
        chain = std::fma(a[row * 8 + k], b[k * 12 + column], chain);
        sum += double{a[row * 8 + k]} * b[k * 12 + column];
        size += std::fabs(double{a[row * 8 + k]} * b[k * 12 + column]);
      }
      EXPECT_EQ(ascending[i], chain);
      EXPECT_NEAR(pairs[i], sum, size * 1e-6);
      EXPECT_NEAR(by_place[i], sum, size * 1e-6);
    }
  }
  EXPECT_NE(ascending, pairs);
  EXPECT_NE(ascending, by_place);
  EXPECT_NE(pairs, by_place);
}

// If all rows and all columns are equal, elements differ only with kByPlace.
TEST(EmulatorTest, MatrixOrderByPlaceTellsEqualRowsApart) {
  std::vector<float> a(64), b(64);
  const std::vector<float> row = some_floats(8);
  for (std::size_t i = 0; i < 64; ++i) {
    a[i] = row[i % 8];
    b[i] = row[i / 8] * 0.37f;
  }
  const int n = 8;
  for (const MatrixOrder order :
       {MatrixOrder::kAscending, MatrixOrder::kPairs, MatrixOrder::kByPlace}) {
    std::vector<float> out(64);
    run_kernel(kernel_named("multiply_matrices"),
               {.buffers = {bind(a), bind(b), bind(out)}, .parameters = parameters_of(n)},
               {.matrix_order = order});
    if (order == MatrixOrder::kByPlace)
      EXPECT_THAT(out, ::testing::Not(Each(out[0])));
    else
      EXPECT_THAT(out, Each(out[0]));
  }
}

TEST(EmulatorTest, FlushesDenormals) {
  const float least = std::numeric_limits<float>::min();
  std::vector<float> x = {least, 0.5f, least / 2, 4.0f}, out(2, -1.0f);
  const int n = 0;
  for (const bool traced : {false, true}) {
    run_kernel(kernel_named("make_denormals", traced),
               {.buffers = {bind(x), bind(out)}, .parameters = parameters_of(n)});
    EXPECT_EQ(std::bit_cast<unsigned>(out[0]), 0u);
    EXPECT_EQ(std::bit_cast<unsigned>(out[1]), 0u);
    volatile float half_of_least = least;
    half_of_least = half_of_least / 2;
    EXPECT_GT(half_of_least, 0.0f) << "the caller's own arithmetic has changed";
  }
}

TEST(EmulatorTest, RoundsToNearestEven) {
  std::vector<float> x = {1.0f + 0x1p-8f, 1.0f + 0x1.8p-7f, 1.0f + 0x1p-11f, 1.0f + 0x1.8p-10f,
                          0x1p-24f,       65520.0f,         INFINITY,        NAN};
  std::vector<std::uint16_t> bfloats(8), halves(8);
  const int n = 8;
  run_kernel(kernel_named("round_to_16_bits"),
             {.buffers = {bind(x), bind(bfloats), bind(halves)}, .parameters = parameters_of(n)});
  EXPECT_EQ(bfloats[0], 0x3f80);
  EXPECT_EQ(bfloats[1], 0x3f82);
  EXPECT_EQ(bfloats[6], 0x7f80);
  EXPECT_EQ(bfloats[7] & 0x7fc0, 0x7fc0);
  EXPECT_EQ(halves[2], 0x3c00);
  EXPECT_EQ(halves[3], 0x3c02);
  EXPECT_EQ(halves[4], 0x0001);
  EXPECT_EQ(halves[5], 0x7c00);
}

TEST(EmulatorTest, CountsBytesAndLines) {
  std::vector<float> x(64), rows(64 * 32), out(64);
  std::vector<std::uint16_t> pairs(128);
  const int n = 2;
  const Counts counts = run_kernel(kernel_named("read_lines"),
                                   {.buffers = {bind(x), bind(rows), bind(pairs), bind(out)},
                                    .parameters = parameters_of(n),
                                    .num_threads = 64},
                                   {.counts = true});
  ASSERT_EQ(counts.buffers.size(), 4);
  const auto expect = [](const BufferCounts& buffer, std::uint64_t loaded, std::uint64_t stored,
                         std::uint64_t lines, std::uint64_t fetched) {
    EXPECT_EQ(buffer.bytes_loaded, loaded);
    EXPECT_EQ(buffer.bytes_stored, stored);
    EXPECT_EQ(buffer.lines, lines);
    EXPECT_EQ(buffer.bytes_fetched, fetched);
  };
  expect(counts.buffers[0], 64 * 4, 0, 2, 2 * 128);
  expect(counts.buffers[1], 64 * 2 * 4, 0, 64 * 2, 64 * 128);
  expect(counts.buffers[2], 64 * 2, 0, 2, 2 * 128);
  expect(counts.buffers[3], 0, 64 * 4, 2, 0);
}

TEST(EmulatorTest, KeepsSixtyFourLinesInItsCache) {
  for (const int n : {63, 64, 65}) {
    std::vector<float> x(static_cast<std::size_t>(n) * kLineFloats), out(32);
    const Counts counts = run_kernel(
        kernel_named("read_again"),
        {.buffers = {bind(x), bind(out)}, .parameters = parameters_of(n)}, {.counts = true});
    EXPECT_EQ(counts.buffers[0].bytes_fetched, (n <= 64 ? n : n + 1) * 128);
  }
}

TEST(EmulatorTest, HoldsADispatchToTheSignature) {
  std::vector<float> x(64), out(64);
  const int n = 64;
  const Dispatch sound = {.buffers = {bind(x), bind(out)},
                          .parameters = parameters_of(n),
                          .num_threads = 64,
                          .threadgroup_bytes = 256};
  const EmulatedKernel& kernel = kernel_named("race_of_lanes_1");
  EXPECT_EQ(kernel.signature.buffers.size(), 2);
  EXPECT_TRUE(kernel.signature.buffers[0].is_const);
  EXPECT_FALSE(kernel.signature.buffers[1].is_const);
  EXPECT_EQ(kernel.signature.buffers[0].element_size, 4);
  EXPECT_EQ(kernel.signature.parameter_bytes, 4);
  EXPECT_NO_THROW(run_kernel(kernel, sound));
  std::vector<Dispatch> wrong(6, sound);
  wrong[0].buffers.pop_back();
  wrong[1].parameters = {};
  wrong[2].num_threads = 48;
  wrong[3].num_threads = 2048;
  wrong[4].threadgroup_bytes = 32772;
  wrong[5].threadgroup_bytes = 0;
  for (const Dispatch& dispatch : wrong)
    EXPECT_THROW(run_kernel(kernel, dispatch), std::runtime_error);
  EXPECT_THROW(run_kernel(kernel_named("race_of_lanes_1", false), sound, {.counts = true}),
               std::runtime_error);
  EXPECT_EQ(find_kernel("race_of_lanes_2"), nullptr);
}

}  // namespace
}  // namespace pagoda::emulator
