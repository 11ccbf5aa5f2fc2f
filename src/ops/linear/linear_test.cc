// Properties of linear that its cases do not show: x in bytes, x with NaN or infinity, many rows.
#include "ops/linear/linear.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "backend/backend.h"
#include "backend/cpu/cpu_isa.h"
#include "ops/gated_linear/gated_linear.h"
#include "ops/linear/linear_cases.h"

namespace pagoda {
namespace {

std::vector<float> run(Exec& exec, const LinearShape& shape, std::span<const float> x) {
  const std::int64_t tokens = static_cast<std::int64_t>(x.size()) / shape.cols;
  const Weight weight = prepare_weight(exec, linear_parts(shape)).value();
  const Tensor out = linear(exec, exec.upload<float>(x, {tokens, shape.cols}), weight, {});
  const std::span<float> values = out.span<float>();
  return {values.begin(), values.end()};
}

TEST(Linear, BytesOfXAreNearFloat32AndBatchInvariant) {
  const auto reference = make_exec({.backend = Backend::kReference}).value();
  Result<std::unique_ptr<Exec>> exec =
      make_exec({.backend = Backend::kCpu, .num_threads = 2, .int8_activations = true});
  if (!includes_avx512(supported_cpu_isas().front())) {
    EXPECT_EQ(exec.status().code(), StatusCode::kUnsupported);
    return;
  }
  for (const WeightFormat format : kWeightFormats) {
    const LinearShape shape = {.tokens = 13, .cols = 512, .parts = {{format, 75}}};
    const std::vector<float> x = linear_inputs(shape);
    const std::vector<float> expected = run(*reference, shape, x);
    const std::vector<float> actual = run(**exec, shape, x);
    double squares = 0, errors = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      squares += double{expected[i]} * expected[i];
      errors += std::pow(double{actual[i]} - expected[i], 2);
    }
    EXPECT_LE(std::sqrt(errors / squares), 0.01) << traits_of(format).name;
    const std::vector<float> alone = run(**exec, shape, std::span(x).subspan(5 * 512, 512));
    EXPECT_EQ(std::memcmp(alone.data(), actual.data() + 5 * 75, 75 * sizeof(float)), 0)
        << traits_of(format).name;
  }
}

// Kernels of many rows overlap the work on 256 k with that on the next, also from panels to panels.
// They divide rows into parts, whose sums they keep in memory, and long rows into parts of k.
TEST(Linear, RowsAreTheSameAloneAndAmongHundreds) {
  constexpr int kRows = 75;
  for (const CpuIsa isa : supported_cpu_isas()) {
    // A single thread multiplies all panels in one call.
    const auto exec =
        make_exec({.backend = Backend::kCpu, .num_threads = 1, .cpu_isa = isa}).value();
    for (const WeightFormat format :
         {WeightFormat::kQ4_0, WeightFormat::kQ8_0, WeightFormat::kQ4_K, WeightFormat::kBF16}) {
      for (const auto& [tokens, cols] : {std::pair{600, 768}, {144, 4352}}) {
        const LinearShape shape = {.tokens = tokens, .cols = cols, .parts = {{format, kRows}}};
        const std::vector<float> x = linear_inputs(shape);
        const std::vector<float> all = run(*exec, shape, x);
        for (const auto& [first, count] :
             {std::pair{0, 1}, {tokens / 2, 14}, {tokens - 30, 30}, {tokens - 1, 1}}) {
          const std::vector<float> some =
              run(*exec, shape,
                  std::span(x).subspan(std::size_t(first) * cols, std::size_t(count) * cols));
          EXPECT_EQ(std::memcmp(some.data(), all.data() + std::size_t(first) * kRows,
                                some.size() * sizeof(float)),
                    0)
              << traits_of(format).name << " on " << cpu_isa_name(isa) << ", " << cols
              << " k, rows from " << first;
        }
      }
    }
  }
}

TEST(Linear, OnlyCpuTakesXInBytes) {
  const Status status =
      make_exec({.backend = Backend::kReference, .int8_activations = true}).status();
  EXPECT_EQ(status.message(), "[device] int8 activations: expected --device cpu, got reference");
}

// NaN and infinity must reach the outputs: so the engine sees that a row overflowed, and reports
// it.
TEST(Linear, NoNumberStaysNoneInItsRowAlone) {
  for (const CpuIsa isa : supported_cpu_isas()) {
    const auto exec =
        make_exec({.backend = Backend::kCpu, .num_threads = 2, .cpu_isa = isa}).value();
    for (const WeightFormat format : kWeightFormats) {
      const LinearShape shape = {.tokens = 9, .cols = 256, .parts = {{format, 33}}};
      std::vector<float> x = linear_inputs(shape);
      x[2 * 256 + 77] = std::numeric_limits<float>::quiet_NaN();
      x[6 * 256 + 200] = std::numeric_limits<float>::infinity();
      const std::vector<float> out = run(*exec, shape, x);
      for (std::size_t i = 0; i < out.size(); ++i) {
        const bool is_hit = i / 33 == 2 || i / 33 == 6;
        EXPECT_EQ(std::isfinite(out[i]), !is_hit)
            << traits_of(format).name << " on " << cpu_isa_name(isa) << " row " << i / 33;
      }
    }
  }
}

// There are few panels for many threads, so rows are divided among them too, in blocks. The last
// block has fewer rows.
TEST(Linear, BlocksOfRowsChangeNoBit) {
  const auto gated = [](Exec& exec, const LinearShape& shape, std::span<const float> x) {
    const Weight weight = prepare_weight(exec, linear_parts(shape), WeightUse::kGated).value();
    const Tensor rows = exec.upload<float>(x, {shape.tokens, shape.cols});
    const std::span<float> values = gated_linear(exec, rows, weight, {}).span<float>();
    return std::vector<float>(values.begin(), values.end());
  };
  const LinearPart part = {WeightFormat::kQ8_0, 75};
  for (const CpuIsa isa : supported_cpu_isas()) {
    const auto one =
        make_exec({.backend = Backend::kCpu, .num_threads = 1, .cpu_isa = isa}).value();
    const auto many =
        make_exec({.backend = Backend::kCpu, .num_threads = 6, .cpu_isa = isa}).value();
    for (const int tokens : {256, 300, 531}) {
      SCOPED_TRACE(fmt::format("{} tokens on {}", tokens, cpu_isa_name(isa)));
      const LinearShape shape = {.tokens = tokens, .cols = 320, .parts = {part}};
      const LinearShape two = {.tokens = tokens, .cols = 320, .parts = {part, part}};
      const std::vector<float> x = linear_inputs(shape);
      EXPECT_EQ(run(*many, shape, x), run(*one, shape, x));
      EXPECT_EQ(gated(*many, two, x), gated(*one, two, x));
    }
  }
}

constexpr int kWideTokens = 13, kWideRows = 40, kWideCols = 320;

// Returns rows of values. Magnitudes grow by 2^step from row to row, and halve after every 8 k.
std::vector<float> wide_values(std::uint32_t seed, int num_rows, int step) {
  std::vector<float> values = random_values(seed, std::int64_t{num_rows} * kWideCols);
  for (int i = 0; i < num_rows * kWideCols; ++i) {
    const int row = i / kWideCols, k = i % kWideCols;
    values[i] = std::ldexp(values[i], (row - num_rows / 2) * step - k / 8);
  }
  return values;
}

// Scales differ widely, some blocks are zero, and a row of weights has a NaN.
TEST(Linear, WideBFloat16WeightsMeetWideX) {
  std::vector<float> x = wide_values(3, kWideTokens, 7), weights = wide_values(4, kWideRows, 3);
  std::fill_n(x.begin() + 5 * kWideCols, kWideCols, 0.0f);
  std::fill_n(x.begin() + 6 * kWideCols, 128, 0.0f);
  std::fill_n(weights.begin() + 7 * kWideCols, kWideCols, 0.0f);
  std::fill_n(weights.begin() + 8 * kWideCols, 64, 0.0f);
  weights[9 * kWideCols + 70] = std::numeric_limits<float>::quiet_NaN();
  std::vector<bf16> halves(weights.size());
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = to_bf16(weights[i]);
  const HostTensor matrix = {.name = "wide",
                             .format = WeightFormat::kBF16,
                             .shape = {kWideRows, kWideCols},
                             .bytes = std::as_bytes(std::span(halves))};
  const auto product = [&](Exec& exec, int first, int count) {
    const Weight weight = prepare_weight(exec, {&matrix, 1}).value();
    const auto rows = std::span(x).subspan(first * kWideCols, count * kWideCols);
    const Tensor out = linear(exec, exec.upload<float>(rows, {count, kWideCols}), weight, {});
    return std::vector<float>(out.data<float>(), out.data<float>() + count * kWideRows);
  };
  for (const CpuIsa isa : supported_cpu_isas()) {
    SCOPED_TRACE(cpu_isa_name(isa));
    const auto exec =
        make_exec({.backend = Backend::kCpu, .num_threads = 2, .cpu_isa = isa}).value();
    const std::vector<float> out = product(*exec, 0, kWideTokens);
    for (int i = 0; i < kWideTokens * kWideRows; ++i) {
      const int token = i / kWideRows, row = i % kWideRows;
      if (row == 9) {
        EXPECT_TRUE(std::isnan(out[i]));
        continue;
      }
      double sum = 0, of_x = 0, of_weights = 0;
      for (int k = 0; k < kWideCols; ++k) {
        const double a = x[token * kWideCols + k], b = to_float(halves[row * kWideCols + k]);
        sum += a * b;
        of_x += a * a;
        of_weights += b * b;
      }
      EXPECT_LE(std::abs(out[i] - sum), 1e-3 * std::sqrt(of_x * of_weights)) << token << " " << row;
    }
    for (int token = 0; token < kWideTokens; ++token) {
      const std::vector<float> alone = product(*exec, token, 1);
      EXPECT_EQ(std::memcmp(alone.data(), out.data() + token * kWideRows, kWideRows * 4), 0);
    }
  }
}

}  // namespace
}  // namespace pagoda
