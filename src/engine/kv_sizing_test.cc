#include "engine/kv_sizing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kv/cache_groups.h"

namespace pagoda {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

// Returns 2 layers of 2 heads of 8: 64 bytes per token and layer in bfloat16. A window as long as
// the context makes no cache group of its own.
ModelConfig small_config() {
  ModelConfig config;
  config.max_position_embeddings = 1000;
  config.layers = {{.mixer = AttentionConfig{.num_kv_heads = 2, .head_dim = 8}},
                   {.mixer = AttentionConfig{.num_kv_heads = 2, .head_dim = 8, .window = 1000}}};
  return config;
}

TEST(KvSizing, HoldsEveryContextWhereMemoryAllows) {
  const Result<KvSizing> sizing =
      size_kv_cache({.max_num_seqs = 3}, small_config(), Backend::kCpu, kGiB);
  ASSERT_TRUE(sizing.ok());
  EXPECT_EQ(sizing->max_model_len, 1000);
  EXPECT_EQ(sizing->num_blocks, 3 * 63);
  EXPECT_EQ(sizing->layout.layers[0].formats.keys, KvFormat::kBFloat16);
  EXPECT_EQ(sizing->layout.layers[1].window, 1000);
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

constexpr KvFormats kInt8 = {KvFormat::kInt8, KvFormat::kInt8};
constexpr KvFormats kK8v4 = {KvFormat::kInt8, KvFormat::kInt4};
constexpr KvFormats kInt4 = {KvFormat::kInt4, KvFormat::kInt4};

// Returns SmolLM2-135M's cache, with heads of `head_dim`.
ModelConfig smollm2_config(int head_dim) {
  ModelConfig config;
  config.max_position_embeddings = 8192;
  config.layers.assign(30, {.mixer = AttentionConfig{.num_kv_heads = 3, .head_dim = head_dim}});
  return config;
}

TEST(KvSizing, CodesHoldTwoToThreeAndAHalfTimesTheBlocks) {
  struct Room {
    KvFormats formats;
    std::int64_t smollm2_bytes;  // bytes per token
    double at_64, at_128;        // blocks in equal memory, as multiples of bfloat16's
  };
  const EngineOptions plain = {.kv_cache_memory_bytes = kGiB};
  for (const Room& room : {Room{kInt8, 11'880, 1.94, 1.97}, Room{kK8v4, 9'180, 2.51, 2.59},
                           Room{kInt4, 6'480, 3.56, 3.76}}) {
    EngineOptions coded = plain;
    coded.kv_cache_formats = room.formats;
    for (const int head_dim : {64, 128}) {
      const ModelConfig config = smollm2_config(head_dim);
      const auto with = size_kv_cache(coded, config, Backend::kCpu, kGiB);
      const auto without = size_kv_cache(plain, config, Backend::kCpu, kGiB);
      ASSERT_TRUE(with.ok() && without.ok());
      EXPECT_NEAR(static_cast<double>(with->num_blocks) / without->num_blocks,
                  head_dim == 64 ? room.at_64 : room.at_128, 0.006);
      if (head_dim == 64) {
        EXPECT_EQ(with->layout.bytes_per_token(), room.smollm2_bytes);
      }
    }
  }
}

TEST(KvSizing, SkippedLayersStayInBFloat16BesideCodes) {
  constexpr KvFormats kBFloat16 = {KvFormat::kBFloat16, KvFormat::kBFloat16};
  constexpr KvFormats kFloat32 = {KvFormat::kFloat32, KvFormat::kFloat32};
  const auto formats_of = [](const KvFormats& asked, const KvSkippedLayers& skipped) {
    const auto sizing =
        size_kv_cache({.kv_cache_formats = asked, .kv_cache_skipped_layers = skipped},
                      small_config(), Backend::kCpu, kGiB);
    return std::vector{sizing->layout.layers[0].formats, sizing->layout.layers[1].formats};
  };
  using ::testing::ElementsAre;
  EXPECT_THAT(formats_of(kK8v4, {}), ElementsAre(kK8v4, kBFloat16));  // the second has a window
  EXPECT_THAT(formats_of(kK8v4, {.windowed = false}), ElementsAre(kK8v4, kK8v4));
  EXPECT_THAT(formats_of(kK8v4, {.windowed = false, .layers = {0}}), ElementsAre(kBFloat16, kK8v4));
  EXPECT_THAT(formats_of({KvFormat::kFloat32, KvFormat::kInt4}, {.layers = {0}}),
              ElementsAre(kBFloat16, kBFloat16));
  EXPECT_THAT(formats_of(kFloat32, {.layers = {0}}), ElementsAre(kFloat32, kFloat32));
}

TEST(KvSizing, ASkippedLayerIsOneOfTheModels) {
  for (const int layer : {-1, 2}) {
    const auto sizing = size_kv_cache({.kv_cache_skipped_layers = {.layers = {0, layer}}},
                                      small_config(), Backend::kCpu, kGiB);
    EXPECT_EQ(sizing.status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(sizing.status().message(),
              fmt::format("[kv cache] layers to skip: expected 0 to 1, got {}", layer));
  }
}

TEST(KvSizing, ALayerThatReadsAnotherOnesCacheTakesNoMemory) {
  ModelConfig config = small_config();
  const auto alone = size_kv_cache({}, config, Backend::kCpu, kGiB);
  config.layers.push_back(config.layers[1]);
  config.layers.back().attention().kv_source = 1;
  const auto sizing = size_kv_cache({}, config, Backend::kCpu, kGiB);
  ASSERT_TRUE(alone.ok() && sizing.ok());
  EXPECT_EQ(sizing->layout.bytes_per_token(), alone->layout.bytes_per_token());
  EXPECT_EQ(sizing->layout.bytes_per_block(), alone->layout.bytes_per_block());
  EXPECT_EQ(sizing->layout.layers.back().source, 1);
  // A layer that reads another layer's entries has that layer's format, and cannot be skipped
  // itself.
  const auto skipped =
      size_kv_cache({.kv_cache_skipped_layers = {.layers = {2}}}, config, Backend::kCpu, kGiB);
  EXPECT_EQ(skipped.status().message(),
            "[kv cache] layers to skip: layer 2 reads the entries of layer 1");
}

TEST(KvSizing, Int4TakesAnEvenHeadDim) {
  ModelConfig config = small_config();
  config.layers[0].attention().head_dim = 7;
  const auto sizing = size_kv_cache({.kv_cache_formats = kK8v4}, config, Backend::kCpu, kGiB);
  EXPECT_EQ(sizing.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(sizing.status().message(),
            "[kv cache] int4: expected an even head_dim, two codes a byte, got 7; int8 takes any");
  EXPECT_TRUE(size_kv_cache({.kv_cache_formats = kInt8}, config, Backend::kCpu, kGiB).ok());
}

// Returns Gemma 3 1B: every sixth of 26 layers sees all positions, the others 512; there is one
// key-value head of 256.
ModelConfig gemma_3_1b() {
  ModelConfig config;
  config.max_position_embeddings = 32'768;
  for (int i = 0; i < 26; ++i) {
    config.layers.push_back(
        {.mixer =
             AttentionConfig{.num_kv_heads = 1, .head_dim = 256, .window = i % 6 == 5 ? 0 : 512}});
  }
  return config;
}

int sequences_in(const KvSizing& sizing, int num_tokens) {
  const CacheGroups groups(sizing.layout.block_size, sizing.layout.group_windows);
  return sizing.num_blocks / groups.most_held(num_tokens);
}

TEST(KvSizing, AWindowsMemoryIsAWindow) {
  ModelConfig without = gemma_3_1b();
  for (LayerConfig& layer : without.layers) layer.attention().window = 0;
  for (const KvFormat format : {KvFormat::kBFloat16, KvFormat::kFloat32}) {
    const EngineOptions options = {.max_num_seqs = 256,
                                   .kv_cache_memory_bytes = 16 * kGiB,
                                   .kv_cache_formats = KvFormats{format, format}};
    const KvSizing sizing = *size_kv_cache(options, gemma_3_1b(), Backend::kCpu, kGiB);
    const KvSizing full = *size_kv_cache(options, without, Backend::kCpu, kGiB);
    EXPECT_EQ(sizing.max_model_len, 32'768);
    EXPECT_GE(sequences_in(sizing, 32'768), 5 * sequences_in(full, 32'768));
    // For a context within the window both kinds of layers need the same memory. Only the two empty
    // places of 28 are lost.
    EXPECT_GE(sequences_in(sizing, 512), sequences_in(full, 512) * 25 / 28);
    EXPECT_LE(sizing.num_blocks * sizing.layout.bytes_per_block(), 16 * kGiB);
  }
}

// Layers with a window are skipped by default, and stay in bfloat16.
TEST(KvSizing, CodesBesideWindowsHoldMoreThanBFloat16) {
  EngineOptions options = {.max_num_seqs = 256, .kv_cache_memory_bytes = 16 * kGiB};
  const int plain =
      sequences_in(*size_kv_cache(options, gemma_3_1b(), Backend::kCpu, kGiB), 32'768);
  const auto times = [&](KvFormat keys, KvFormat values) {
    options.kv_cache_formats = KvFormats{keys, values};
    const KvSizing sizing = *size_kv_cache(options, gemma_3_1b(), Backend::kCpu, kGiB);
    return static_cast<double>(sequences_in(sizing, 32'768)) / plain;
  };
  EXPECT_NEAR(times(KvFormat::kInt8, KvFormat::kInt8), 1.85, 0.03);
  // A place holds two layers' int8 keys. Their int4 values fill half of the memory for values.
  EXPECT_NEAR(times(KvFormat::kInt8, KvFormat::kInt4), 1.48, 0.03);
  EXPECT_NEAR(times(KvFormat::kInt4, KvFormat::kInt4), 3.14, 0.05);
}

TEST(KvSizing, AContextOfSeveralGroupsIsAsLongAsItsBlocksReach) {
  const auto sizing = size_kv_cache({.num_kv_blocks = 300}, gemma_3_1b(), Backend::kCpu, 64 * kGiB);
  ASSERT_TRUE(sizing.ok());
  // 102 blocks for the layers that see all, and 33 for each of the six groups with a window.
  EXPECT_EQ(sizing->max_model_len, 102 * 16);
}

TEST(KvSizing, AContiguousCacheKeepsAllEntries) {
  const auto sizing = size_kv_cache({.kv_cache_layout = KvCacheLayout::kContiguous}, gemma_3_1b(),
                                    Backend::kCpu, 64 * kGiB);
  ASSERT_TRUE(sizing.ok());
  EXPECT_EQ(sizing->layout.group_windows, std::vector{0});
}

}  // namespace
}  // namespace pagoda
