// The scalar codecs against the Python package gguf, bit for bit (tools/make_quant_fixture.py made
// the file), and what they promise to readers.
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

namespace pagoda {
namespace {

std::vector<std::byte> from_hex(std::string_view hex) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

struct DecodedBlock {
  std::string format;
  std::vector<std::byte> block;
  std::vector<std::byte> values;  // float32
};

std::vector<DecodedBlock> read_fixture() {
  std::ifstream file(std::string(PAGODA_SOURCE_DIR) + "/src/quant/testdata/block_formats.txt");
  std::vector<DecodedBlock> blocks;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string format, block, values;
    words >> format >> block >> values;
    if (format != "#") blocks.push_back({format, from_hex(block), from_hex(values)});
  }
  return blocks;
}

const WeightFormatTraits* find_format(std::string_view name) {
  for (const WeightFormat format : kWeightFormats) {
    if (traits_of(format).name == name) return &traits_of(format);
  }
  return nullptr;
}

TEST(BlockFormats, DecodeBitForBitAsThePackageGguf) {
  std::set<std::string> seen;
  for (const DecodedBlock& expected : read_fixture()) {
    const WeightFormatTraits* traits = find_format(expected.format);
    ASSERT_NE(traits, nullptr) << expected.format;
    seen.insert(expected.format);
    ASSERT_EQ(static_cast<int>(expected.block.size()), traits->block_bytes);
    ASSERT_EQ(static_cast<int>(expected.values.size()), traits->block_size * 4);
    std::vector<float> values(traits->block_size);
    traits->dequantize(expected.block, values.data());
    for (int i = 0; i < traits->block_size; ++i) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, expected.values.data() + i * sizeof(bits), sizeof(bits));
      EXPECT_EQ(std::bit_cast<std::uint32_t>(values[i]), bits) << expected.format << " value " << i;
    }
  }
  EXPECT_EQ(seen.size(), std::size(kWeightFormats) - 3) << "F32, F16 and BF16 are no blocks";
}

TEST(BlockFormats, BlocksInARowAreReadOneByOneAtAnyAlignment) {
  for (const WeightFormatTraits* traits : {find_format("Q5_0"), find_format("Q6_K")}) {
    std::vector<std::byte> row(1);  // one byte off
    std::vector<float> expected;
    for (const DecodedBlock& block : read_fixture()) {
      if (block.format != traits->name) continue;
      row.insert(row.end(), block.block.begin(), block.block.end());
      std::vector<float> values(traits->block_size);
      std::memcpy(values.data(), block.values.data(), block.values.size());
      expected.insert(expected.end(), values.begin(), values.end());
    }
    std::vector<float> values(expected.size());
    traits->dequantize(std::span<const std::byte>(row).subspan(1), values.data());
    EXPECT_EQ(values, expected);
  }
}

}  // namespace
}  // namespace pagoda
