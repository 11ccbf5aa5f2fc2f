// The cpu attention's products by AMX tiles, on machines that may have no AMX: with the emulated
// intrinsics of tests/emulated_x86.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "core/half.h"
#include "ops/attention/cpu/tile_products-inl.h"
#include "ops/op_case.h"

namespace pagoda {
namespace {

constexpr int kBlocks = 3;
constexpr int kPairs = kBlocks * cpu::kPairsOfBlock;
constexpr int kRows = 2 * cpu::kTileRows, kColumns = 2 * cpu::kTileColumns;

struct Pair {
  float first;
  float second;
};
Pair halves_of(std::uint32_t pair) {
  return {std::bit_cast<float>(pair << 16), std::bit_cast<float>(pair & 0xffff0000u)};
}

struct Counter {
  using Cursor = Counter&;
  int count = 0;
  void advance() { ++count; }
};

std::vector<std::uint32_t> random_pairs(int seed, int count) {
  const std::vector<float> values = random_values(seed, 2 * count);
  std::vector<std::uint32_t> pairs(count);
  for (int i = 0; i < count; ++i) {
    pairs[i] = to_bf16(values[2 * i]).bits | std::uint32_t{to_bf16(values[2 * i + 1]).bits} << 16;
  }
  return pairs;
}

class EmulatedTiles : public testing::Test {
 protected:
  // Returns the sum for a row and a column, computed as for few rows.
  float expected(int row, int column) const {
    float sum = 0;
    for (int block = 0; block < kBlocks; ++block) sum += block_sum(row, block, column);
    return sum;
  }
  float block_sum(int row, int block, int column) const {
    float first = 0, second = 0;
    for (int i = block * cpu::kPairsOfBlock; i < (block + 1) * cpu::kPairsOfBlock; ++i) {
      const Pair a = halves_of(a_[row * kPairs + i]);
      const Pair b = halves_of(b_[i * kColumns + column]);
      first = std::fma(a.first, b.first, first);
      second = std::fma(a.second, b.second, second);
    }
    return first + second;
  }

  template <int kRowTiles, int kColumnTiles>
  void expect_products() {
    const std::vector<float> before = random_values(3, kRows * kColumns);
    std::vector<float> sums = before;
    Counter products;
    const cpu::TileRegisters registers(cpu::shapes_of_pairs());
    const cpu::TileProduct product = {.a = a_.data(),
                                      .a_stride = kPairs,
                                      .b = b_.data(),
                                      .b_stride = kColumns,
                                      .num_blocks = kBlocks,
                                      .sums = sums.data(),
                                      .sums_stride = kColumns};
    cpu::multiply_tiles<kRowTiles, kColumnTiles>(product, products);
    EXPECT_EQ(products.count, kBlocks * kRowTiles * kColumnTiles);
    for (int row = 0; row < kRows; ++row) {
      for (int column = 0; column < kColumns; ++column) {
        const int at = row * kColumns + column;
        const bool is_computed =
            row < kRowTiles * cpu::kTileRows && column < kColumnTiles * cpu::kTileColumns;
        const float own = is_computed ? expected(row, column) : before[at];
        ASSERT_EQ(sums[at], own) << row << ", " << column;
      }
    }
  }

  const std::vector<std::uint32_t> a_ = random_pairs(1, kRows* kPairs);
  const std::vector<std::uint32_t> b_ = random_pairs(2, kPairs* kColumns);
};

TEST_F(EmulatedTiles, MultiplyAsFewRowsDo) {
  expect_products<1, 1>();
  expect_products<1, 2>();
  expect_products<2, 1>();
  expect_products<2, 2>();
}

}  // namespace
}  // namespace pagoda
