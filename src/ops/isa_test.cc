// Runs every op case on every instruction set that this machine has, and checks that products use
// the one that was chosen.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <memory>

#include "backend/backend.h"
#include "backend/cpu/cpu_exec.h"
#include "backend/cpu/cpu_weight.h"
#include "ops/linear/linear.h"
#include "ops/linear/linear_kernels.h"
#include "ops/op_cases.h"
#include "ops/reference_outputs.h"
#include "quant/owned_bytes.h"
#include "quant/q2_k.h"

namespace pagoda {
namespace {

using Outputs = std::vector<std::vector<float>>;

std::unique_ptr<Exec> make_isa_exec(CpuIsa isa, int num_threads) {
  return make_exec({.backend = Backend::kCpu, .num_threads = num_threads, .cpu_isa = isa}).value();
}

const cpu::LinearKernels* own_kernels(CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kAvx512:
      return cpu::kAvx512Kernels;
    case CpuIsa::kAmx:
      return cpu::kAmxKernels;
    case CpuIsa::kAvx2:
      return cpu::kAvx2Kernels;
    case CpuIsa::kNeon:
      return cpu::kNeonKernels;
    case CpuIsa::kPortable:
      break;
  }
  return cpu::kPortableKernels;
}

std::vector<int> last_tokens(const OpCase& op_case, int count) {
  std::vector<int> tokens = all_tokens(op_case);
  if (count < op_case.num_tokens) tokens.erase(tokens.begin(), tokens.end() - count);
  return tokens;
}

// Expects that the last `count` rows of each output are equal.
void expect_last_rows(const Outputs& actual, const Outputs& all, const OpCase& op_case, int count) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::size_t size = all[i].size() / op_case.num_tokens * count;
    ASSERT_EQ(actual[i].size(), size);
    EXPECT_TRUE(same_bits(actual[i], std::span(all[i]).last(size))) << count << " tokens";
  }
}

class Isa : public ::testing::TestWithParam<CpuIsa> {};

TEST_P(Isa, IsNearTheReferenceAndBatchInvariant) {
  const auto two = make_isa_exec(GetParam(), 2);
  const auto three = make_isa_exec(GetParam(), 3);
  ASSERT_EQ(cpu::isa_of(*two), GetParam());
  for (const OpCase& op_case : all_op_cases()) {
    if (op_case.is_large) continue;
    SCOPED_TRACE(op_case.op + " " + op_case.description);
    const std::vector<int> tokens = all_tokens(op_case);
    const Outputs& expected = reference_outputs(op_case);
    const Outputs all = run_case(*two, op_case, tokens).value();
    ASSERT_EQ(all.size(), expected.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      EXPECT_LE(relative_error(all[i], expected[i]), op_case.tolerance.cpu);
    }
    const Outputs on_three = run_case(*three, op_case, tokens).value();
    for (std::size_t i = 0; i < all.size(); ++i) EXPECT_TRUE(same_bits(on_three[i], all[i]));
    if (!op_case.rows_are_tokens) continue;
    for (const int count : {1, 3}) {
      if (count > op_case.num_tokens) continue;
      expect_last_rows(run_case(*two, op_case, last_tokens(op_case, count)).value(), all, op_case,
                       count);
    }
  }
}

constexpr int kSmallTokens = 3, kSmallCols = 512, kSmallRows = 48;

Weight small_weight(Exec& exec, WeightFormat format) {
  const std::vector<HostTensor> parts = {random_matrix(7, format, kSmallRows, kSmallCols)};
  return prepare_weight(exec, parts).value();
}
std::vector<float> small_inputs() {
  return random_values(8, std::int64_t{kSmallTokens} * kSmallCols);
}

// Makes a matrix whose codes, scales and minima are the largest that the format has.
HostTensor largest_matrix(WeightFormat format) {
  HostTensor matrix = random_matrix(9, format, kSmallRows, kSmallCols);
  const auto storage = std::make_shared<OwnedBytes>(matrix.bytes.size());
  const std::size_t block_bytes = traits_of(format).block_bytes;
  const bool is_two_bits = format == WeightFormat::kQ2_K;
  const std::size_t numbers = is_two_bits ? offsetof(BlockQ2_K, scale) : 0;  // in float16
  std::fill(storage->bytes.begin(), storage->bytes.end(), std::byte{0xff});
  for (std::size_t at = numbers; at < storage->bytes.size(); at += block_bytes) {
    std::copy_n(&matrix.bytes[at], 2 * sizeof(f16), &storage->bytes[at]);
  }
  matrix.bytes = storage->bytes;
  matrix.storage = storage;
  return matrix;
}

// Sums of integers do not overflow when all have the largest magnitude, whatever their signs.
TEST_P(Isa, TakesTheLargestIntegers) {
  const auto exec = make_isa_exec(GetParam(), 1);
  const auto reference = make_exec({.backend = Backend::kReference}).value();
  for (const WeightFormat format :
       {WeightFormat::kQ2_K, WeightFormat::kQ4_K, WeightFormat::kQ5_K}) {
    const HostTensor matrix = largest_matrix(format);
    for (const int rows : {1, 32}) {
      SCOPED_TRACE(fmt::format("{}, {} rows", traits_of(format).name, rows));
      std::vector<float> x(std::int64_t{rows} * kSmallCols, 3.0f);
      std::fill(x.begin() + kSmallCols / 2, x.begin() + kSmallCols, -3.0f);
      std::fill(x.end() - kSmallCols, x.end(), -3.0f);
      const auto product = [&](Exec& on) {
        const Weight weight = prepare_weight(on, {&matrix, 1}).value();
        const Tensor out = linear(on, on.upload<float>(x, {rows, kSmallCols}), weight, {});
        return std::vector<float>(out.data<float>(), out.data<float>() + rows * kSmallRows);
      };
      EXPECT_LE(relative_error(product(*exec), product(*reference)), 1e-5f);
    }
  }
}

// Returns the result of linear().
std::vector<float> product_on(Exec& exec, WeightFormat format) {
  const Weight weight = small_weight(exec, format);
  const Tensor x = exec.upload<float>(small_inputs(), {kSmallTokens, kSmallCols});
  const Tensor out = linear(exec, x, weight, {});
  return {out.data<float>(), out.data<float>() + kSmallTokens * kSmallRows};
}

// Calls `kernels` directly for the same product, in tiles of one row. Returns an empty list if they
// do not take the format.
std::vector<float> product_by(const cpu::LinearKernels& kernels, Exec& exec, WeightFormat format) {
  const Weight weight = small_weight(exec, format);
  const cpu::WeightSegment& segment = cpu::packed(weight).segments()[0];
  cpu::ActivationLayout layout;
  if (!kernels.layout_of(segment.layout.kind, layout)) return {};
  const std::vector<float> x = small_inputs();
  const std::int64_t tile_bytes = kernels.tile_bytes(layout, 1, kSmallCols);
  const Tensor tiles = exec.allocate(DType::kFloat32, {kSmallTokens, tile_bytes / 4});
  auto* memory = reinterpret_cast<std::byte*>(tiles.data<float>());
  for (int row = 0; row < kSmallTokens; ++row) {
    kernels.pack_tile(layout,
                      {.x = x.data() + row * kSmallCols,
                       .x_stride = kSmallCols,
                       .num_rows = 1,
                       .tile_rows = 1,
                       .cols = kSmallCols},
                      {0, kSmallCols}, memory + row * tile_bytes);
  }
  std::vector<float> out(kSmallTokens * kSmallRows);
  kernels.multiply({.kind = segment.layout.kind,
                    .layout = layout,
                    .tiles = memory,
                    .tile_bytes = tile_bytes,
                    .tile_rows = 1,
                    .num_rows = kSmallTokens,
                    .cols = kSmallCols,
                    .panels = segment.panels->host(),
                    .panel_bytes = segment.panel_bytes,
                    .header_area = segment.layout.header_area(),
                    .units_of_header = segment.layout.units_of_header,
                    .header_is_bfloat16 = segment.layout.header_is_bfloat16,
                    .num_columns = kSmallRows,
                    .out = out.data(),
                    .out_stride = kSmallRows},
                   0, segment.num_panels());
  return out;
}

TEST_P(Isa, IsTheOneWhoseKernelsMultiply) {
  const cpu::LinearKernels* own = own_kernels(GetParam());
  ASSERT_NE(own, nullptr);
  const auto exec = make_isa_exec(GetParam(), 1);
  for (const WeightFormat format : kWeightFormats) {
    SCOPED_TRACE(traits_of(format).name);
    const std::vector<float> expected = product_by(*own, *exec, format);
    const std::vector<float> portable = product_by(*cpu::kPortableKernels, *exec, format);
    const std::vector<float> actual = product_on(*exec, format);
    EXPECT_TRUE(same_bits(actual, expected.empty() ? portable : expected));
    // The portable kernels multiply in float32, so the bits of their results differ.
    if (own == cpu::kPortableKernels) continue;
    EXPECT_EQ(expected.empty(), format == WeightFormat::kF32);
    EXPECT_EQ(same_bits(actual, portable), format == WeightFormat::kF32);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Isa, ::testing::ValuesIn(supported_cpu_isas()),
                         [](const auto& info) { return std::string(cpu_isa_name(info.param)); });

}  // namespace
}  // namespace pagoda
