#include "kv/block_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace pagoda {
namespace {

using ::testing::HasSubstr;

struct Block {
  BlockFileKey key;
  std::vector<int> tokens;
  std::vector<std::byte> bytes;
};

Block make_block(int salt, std::size_t num_tokens = 4, std::size_t num_bytes = 200) {
  Block block{.tokens = std::vector<int>(num_tokens), .bytes = std::vector<std::byte>(num_bytes)};
  block.key.scope.fill(7);
  block.key.digest.fill(static_cast<std::uint8_t>(salt));
  std::iota(block.tokens.begin(), block.tokens.end(), 1000);
  for (std::size_t i = 0; i < num_bytes; ++i) block.bytes[i] = std::byte(i * 37 + salt);
  return block;
}

std::vector<std::byte> file_of(const Block& block) {
  std::vector<std::byte> file(block_file_size(block.tokens.size(), block.bytes.size()));
  begin_block_file(block.key, block.tokens, file);
  std::ranges::copy(block.bytes, block_file_bytes(file, block.tokens.size()).begin());
  end_block_file(file);
  return file;
}

Result<std::span<const std::byte>> read(std::span<const std::byte> file, const Block& block) {
  return read_block_file(file, block.key, block.tokens, block.bytes.size());
}

TEST(BlockFile, GivesBackTheBytes) {
  for (const auto& [num_tokens, num_bytes] : {std::pair(1, 1), {16, 23040}, {400, 12}}) {
    const Block block = make_block(1, num_tokens, num_bytes);
    const auto file = file_of(block);
    const auto bytes = read(file, block);
    ASSERT_TRUE(bytes.ok()) << bytes.status().message();
    EXPECT_TRUE(std::ranges::equal(*bytes, block.bytes));
  }
}

TEST(BlockFile, OneOfAnotherLengthIsRefused) {
  const Block block = make_block(1);
  std::vector<std::byte> file = file_of(block);
  for (std::size_t size = 0; size < file.size(); ++size)
    ASSERT_EQ(read(std::span(file).first(size), block).status().code(), StatusCode::kDataLoss);
  file.push_back(std::byte{0});
  EXPECT_EQ(read(file, block).status().code(), StatusCode::kDataLoss);
}

TEST(BlockFile, AnyBitThatIsFlippedIsSeen) {
  const Block block = make_block(1);
  std::vector<std::byte> file = file_of(block);
  for (std::size_t i = 0; i < file.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      file[i] ^= std::byte(1 << bit);
      ASSERT_EQ(read(file, block).status().code(), StatusCode::kDataLoss) << i;
      file[i] ^= std::byte(1 << bit);
    }
  }
  EXPECT_TRUE(read(file, block).ok());
}

// Blocks with the same tokens but different parents differ only in digest and bytes.
TEST(BlockFile, OneUnderAnotherNameIsRefused) {
  const Block block = make_block(1), other = make_block(2);
  EXPECT_THAT(read(file_of(other), block).status().message(), HasSubstr("expected block 0101"));
  Block elsewhere = block;
  elsewhere.key.scope.fill(8);
  EXPECT_EQ(read(file_of(elsewhere), block).status().code(), StatusCode::kDataLoss);
  Block reworded = block;
  reworded.tokens.back() = 0;
  EXPECT_THAT(read(file_of(reworded), block).status().message(), HasSubstr("tokens"));
}

TEST(BlockFile, SizesThatAreClaimedDoNotCount) {
  const Block block = make_block(1);
  const Block shorter = make_block(1, 3, 204);  // a file of the same length
  EXPECT_THAT(read(file_of(shorter), block).status().message(),
              HasSubstr("expected 4 tokens and 200 bytes, got 3 and 204"));
}

}  // namespace
}  // namespace pagoda
