#include "engine/kv_sizing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pagoda {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

// 2 layers of 2 heads of 8: 64 bytes a token and layer in bfloat16.
ModelConfig small_config() {
  ModelConfig config;
  config.max_position_embeddings = 1000;
  config.layers = {{.num_kv_heads = 2, .head_dim = 8},
                   {.num_kv_heads = 2, .head_dim = 8, .window = 16}};
  return config;
}

TEST(KvSizing, HoldsEveryContextWhereMemoryAllows) {
  const Result<KvSizing> sizing =
      size_kv_cache({.max_num_seqs = 3}, small_config(), Backend::kCpu, kGiB);
  ASSERT_TRUE(sizing.ok());
  EXPECT_EQ(sizing->max_model_len, 1000);
  EXPECT_EQ(sizing->num_blocks, 3 * 63);
  EXPECT_EQ(sizing->layout.layers[0].formats.keys, KvFormat::kBFloat16);
  EXPECT_EQ(sizing->layout.layers[1].window, 16);
}

TEST(KvSizing, ReferenceKeepsFloat32UnlessToldOtherwise) {
  EXPECT_EQ(
      size_kv_cache({}, small_config(), Backend::kReference, kGiB)->layout.layers[0].formats.keys,
      KvFormat::kFloat32);
  EXPECT_EQ(size_kv_cache({.kv_cache_formats = KvFormats{KvFormat::kFloat16, KvFormat::kFloat16}},
                          small_config(), Backend::kReference, kGiB)
                ->layout.layers[0]
                .formats.keys,
            KvFormat::kFloat16);
}

TEST(KvSizing, TheContextIsAtMostTheCheckpoints) {
  EXPECT_EQ(
      size_kv_cache({.max_model_len = 1 << 20}, small_config(), Backend::kCpu, kGiB)->max_model_len,
      1000);
  EXPECT_EQ(
      size_kv_cache({.max_model_len = 300}, small_config(), Backend::kCpu, kGiB)->max_model_len,
      300);
}

TEST(KvSizing, AContextHasRoomForAPromptAndAnAnswer) {
  const auto sizing = size_kv_cache({.max_model_len = 1}, small_config(), Backend::kCpu, kGiB);
  EXPECT_EQ(sizing.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(sizing.status().message(), testing::HasSubstr("expected 2 tokens at least"));
}

TEST(KvSizing, ANumberOfBlocksIsOfThePagedLayout) {
  const auto sizing =
      size_kv_cache({.num_kv_blocks = 8, .kv_cache_layout = KvCacheLayout::kContiguous},
                    small_config(), Backend::kCpu, kGiB);
  EXPECT_EQ(sizing.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(sizing.status().message(), testing::HasSubstr("num_kv_blocks"));
}

TEST(KvSizing, ShortMemoryShortensTheContext) {
  const std::int64_t bytes_of_160_tokens = 160 * 2 * 64;
  const Result<KvSizing> sizing =
      size_kv_cache({}, small_config(), Backend::kCpu, 2 * bytes_of_160_tokens);
  ASSERT_TRUE(sizing.ok());
  EXPECT_EQ(sizing->num_blocks, 10);
  EXPECT_EQ(sizing->max_model_len, 160);
}

TEST(KvSizing, AskedBlocksAndBytesAreTaken) {
  EXPECT_EQ(size_kv_cache({.num_kv_blocks = 7}, small_config(), Backend::kCpu, kGiB)->num_blocks,
            7);
  EXPECT_EQ(size_kv_cache({.num_kv_blocks = 7}, small_config(), Backend::kCpu, kGiB)->max_model_len,
            7 * 16);
  EXPECT_EQ(size_kv_cache({.kv_cache_memory_bytes = 64 * 128}, small_config(), Backend::kCpu, kGiB)
                ->num_blocks,
            4);
}

TEST(KvSizing, ContiguousGivesEachSequenceOneBlock) {
  const EngineOptions options = {.max_num_seqs = 8, .kv_cache_layout = KvCacheLayout::kContiguous};
  const Result<KvSizing> sizing = size_kv_cache(options, small_config(), Backend::kCpu, kGiB);
  ASSERT_TRUE(sizing.ok());
  EXPECT_EQ(sizing->layout.block_size, 1000);
  EXPECT_EQ(sizing->num_blocks, 8);
  EngineOptions short_of_memory = options;
  short_of_memory.kv_cache_memory_bytes = 2500 * 128;
  EXPECT_EQ(size_kv_cache(short_of_memory, small_config(), Backend::kCpu, kGiB)->max_num_seqs, 2);
}

TEST(KvSizing, NoRoomForABlockIsAnError) {
  const Result<KvSizing> sizing = size_kv_cache({}, small_config(), Backend::kCpu, 100);
  ASSERT_FALSE(sizing.ok());
  EXPECT_EQ(sizing.status().code(), StatusCode::kResourceExhausted);
  EXPECT_NE(sizing.status().message().find("[kv cache]"), std::string::npos);
}

}  // namespace
}  // namespace pagoda
