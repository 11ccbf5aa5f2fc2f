// The scalar codecs and quantisers against the Python package gguf, bit for bit
// (tools/make_quant_fixture.py made the files).
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "quant/weight_format.h"
#include "tests/support/hex_bytes.h"
#include "tests/support/reference_quantizers.h"
#include "tests/support/source_path.h"

namespace pagoda {
namespace {

using testing::from_hex;
using testing::quantize;

struct DecodedBlock {
  std::string format;
  std::vector<std::byte> block;
  std::vector<std::byte> values;  // float32
};

std::vector<DecodedBlock> read_fixture(const std::string& name) {
  std::ifstream file(testing::source_path("src/quant/testdata/") + name);
  std::vector<DecodedBlock> blocks;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string format, block, values;
    words >> format >> block >> values;
    if (format != "#") blocks.push_back({format, from_hex(block), from_hex(values)});
  }
  return blocks;
}

WeightFormat find_format(std::string_view name) {
  for (const WeightFormat format : kWeightFormats) {
    if (traits_of(format).name == name) return format;
  }
  ADD_FAILURE() << "no format " << name;
  return WeightFormat::kF32;
}

TEST(BlockFormats, DecodeBitForBitAsThePackageGguf) {
  std::set<std::string> seen;
  for (const DecodedBlock& expected : read_fixture("block_formats.txt")) {
    const WeightFormatTraits& traits = traits_of(find_format(expected.format));
    seen.insert(expected.format);
    ASSERT_EQ(static_cast<int>(expected.block.size()), traits.block_bytes);
    ASSERT_EQ(static_cast<int>(expected.values.size()), traits.block_size * 4);
    std::vector<float> values(traits.block_size);
    traits.dequantize(expected.block, values.data());
    for (int i = 0; i < traits.block_size; ++i) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, expected.values.data() + i * sizeof(bits), sizeof(bits));
      EXPECT_EQ(std::bit_cast<std::uint32_t>(values[i]), bits) << expected.format << " value " << i;
    }
  }
  EXPECT_EQ(seen.size(), std::size(kWeightFormats) - 3) << "F32, F16 and BF16 are no blocks";
}

TEST(BlockFormats, BlocksInARowAreReadOneByOneAtAnyAlignment) {
  for (const WeightFormat format : {WeightFormat::kQ5_0, WeightFormat::kQ6_K}) {
    const WeightFormatTraits& traits = traits_of(format);
    std::vector<std::byte> row(1);  // one byte off
    std::vector<float> expected;
    for (const DecodedBlock& block : read_fixture("block_formats.txt")) {
      if (block.format != traits.name) continue;
      row.insert(row.end(), block.block.begin(), block.block.end());
      std::vector<float> values(traits.block_size);
      std::memcpy(values.data(), block.values.data(), block.values.size());
      expected.insert(expected.end(), values.begin(), values.end());
    }
    std::vector<float> values(expected.size());
    traits.dequantize(std::span<const std::byte>(row).subspan(1), values.data());
    EXPECT_EQ(values, expected);
  }
}

TEST(BlockFormats, QuantiseBitForBitAsThePackageGguf) {
  std::set<std::string> seen;
  for (const DecodedBlock& expected : read_fixture("quantised_blocks.txt")) {
    seen.insert(expected.format);
    std::vector<float> values(expected.values.size() / sizeof(float));
    std::memcpy(values.data(), expected.values.data(), expected.values.size());
    EXPECT_EQ(quantize(find_format(expected.format), values), expected.block) << expected.format;
  }
  EXPECT_EQ(seen, (std::set<std::string>{"Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"}));
}

}  // namespace
}  // namespace pagoda
