#include "cli/bench/model_work.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace pagoda {
namespace {

ModelConfig smollm2_like() {
  const LayerConfig layer = {
      .mixer = AttentionConfig{.num_heads = 9, .num_kv_heads = 3, .head_dim = 64},
      .mlp = DenseMlpConfig{.intermediate_size = 1536}};
  return {.architecture = "llama",
          .vocab_size = 49152,
          .hidden_size = 576,
          .layers = std::vector<LayerConfig>(30, layer)};
}

TEST(ModelWork, CountsEveryWeightOfALayerOnceAToken) {
  // 134,515,008 parameters, without the embedding and the 61 norms of 576.
  EXPECT_EQ(layer_products_per_token(smollm2_like()), 134515008.0 - 49152 * 576 - 61 * 576);
  EXPECT_EQ(head_products_per_row(smollm2_like()), 49152.0 * 576);
}

TEST(ModelWork, AttentionIsTheSumOverWhatEachTokenSees) {
  ModelConfig config = smollm2_like();
  config.layers.resize(4);
  config.layers[1].attention().window = 5;
  config.layers[2].attention().window = 1;
  config.layers[3].attention().window = 1000;
  for (const int tokens : {1, 2, 4, 5, 6, 37}) {
    double pairs = 0;
    for (const LayerConfig& layer : config.layers) {
      for (int position = 0; position < tokens; ++position)
        pairs += layer.attention().window > 0 ? std::min(layer.attention().window, position + 1)
                                              : position + 1;
    }
    EXPECT_EQ(attention_products(config, tokens), 2 * pairs * 9 * 64) << tokens;
  }
}

}  // namespace
}  // namespace pagoda
