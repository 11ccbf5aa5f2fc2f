// The keys of Gemma 4's GGUF files, whose layers differ in more than their windows.
#include "model/gguf/gguf_config_fixture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

namespace pagoda {
namespace {

// A file of three layers. The second has full attention, and the last reads the cache of the first.
class Gemma4File : public GgufModel {
 public:
  Gemma4File() : GgufModel("gemma4") {
    set_own("attention.key_length", 32u).set_own("attention.value_length", 32u);
    set_own("attention.key_length_swa", 16u).set_own("attention.value_length_swa", 16u);
    set_own("attention.sliding_window", 8u);
    set_own("attention.sliding_window_pattern", std::vector<bool>{true, false, true});
    set_own("attention.shared_kv_layers", 1u);
    set_own("embedding_length_per_layer_input", 12u);
    set_own("rope.freq_base", 1e6f).set_own("rope.freq_base_swa", 1e4f);
    set_own("rope.dimension_count", 32u).set_own("rope.dimension_count_swa", 16u);
    tensor("blk.0.attn_v.weight", {32, kHidden});
    std::vector<float> divisors(16, 1e30f);
    std::fill(divisors.begin(), divisors.begin() + 4, 1.0f);
    tensor("rope_freqs.weight", {16}, divisors);
  }
};

TEST(GgufGemma4Test, LayersDifferByTheirWindows) {
  const auto config = Gemma4File().read();
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->architecture, "gemma4_text");
  EXPECT_EQ(config->per_layer_width, 12);
  EXPECT_THAT(testing::windows_of(*config), ElementsAre(8, 0, 8));
  const std::vector<int> head_dims = {16, 32, 16}, sources = {-1, -1, 0};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(config->layers[i].attention().head_dim, head_dims[i]);
    EXPECT_EQ(config->layers[i].attention().kv_source, sources[i]);
    EXPECT_EQ(config->layers[i].attention().keys_are_values, i == 1);  // layer 1 has no attn_v
    EXPECT_EQ(config->layers[i].attention().score_scale, 1);
  }
  std::vector<float> rotated = rope_inverse_frequencies(32, 1e6, {});
  std::fill(rotated.begin() + 4, rotated.end(), 0.0f);
  EXPECT_EQ(config->rope_tables[config->layers[1].attention().rope_table].inv_freq, rotated);
  EXPECT_EQ(config->rope_tables[config->layers[0].attention().rope_table].inv_freq,
            rope_inverse_frequencies(16, 1e4, {}));
}

// The header of google/gemma-4-E4B-it's published files, without its text.
TEST(GgufGemma4Test, ReadsTheE4BsHeader) {
  GgufModel model("gemma4");
  std::vector<bool> windowed(42, true);
  for (int i = 5; i < 42; i += 6) windowed[i] = false;
  model.set_own("block_count", 42u).set_own("context_length", 131072u);
  model.set_own("embedding_length", 2560u).set_own("feed_forward_length", 10240u);
  model.set_own("attention.head_count", 8u).set_own("attention.head_count_kv", 2u);
  model.set_own("attention.layer_norm_rms_epsilon", 1e-6f);
  model.set_own("attention.key_length", 512u).set_own("attention.value_length", 512u);
  model.set_own("attention.key_length_swa", 256u).set_own("attention.value_length_swa", 256u);
  model.set_own("attention.shared_kv_layers", 18u).set_own("attention.sliding_window", 512u);
  model.set_own("attention.sliding_window_pattern", windowed);
  model.set_own("embedding_length_per_layer_input", 256u).set_own("final_logit_softcapping", 30.0f);
  model.set_own("rope.freq_base", 1e6f).set_own("rope.freq_base_swa", 1e4f);
  model.set_own("rope.dimension_count", 512u).set_own("rope.dimension_count_swa", 256u);
  model.tensor("token_embd.weight", {kVocab, 2560});
  for (int i = 0; i < 24; ++i) model.tensor(fmt::format("blk.{}.attn_v.weight", i), {1, 1});
  const auto config = model.read();
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->embedding_factor, std::sqrt(2560.0f));
  EXPECT_EQ(config->glu.activation, Activation::kGeluTanh);
  EXPECT_EQ(config->logits_cap, 30);
  EXPECT_EQ(config->per_layer_width, 256);
  for (int i = 0; i < 42; ++i) {
    const AttentionConfig& layer = config->layers[i].attention();
    EXPECT_EQ(layer.window, windowed[i] ? 512 : 0) << i;
    EXPECT_EQ(layer.head_dim, windowed[i] ? 256 : 512) << i;
    EXPECT_EQ(layer.kv_source, i < 24 ? -1 : windowed[i] ? 22 : 23) << i;
    EXPECT_FALSE(layer.keys_are_values) << i;
  }
}

// Gives a file experts, and their routers to the layers `sparse`.
Gemma4File& add_experts(Gemma4File& file, const std::vector<int>& sparse) {
  file.set_own("expert_count", 8u).set_own("expert_used_count", 2u);
  file.set_own("expert_feed_forward_length", 48u);
  for (const int layer : sparse) {
    file.tensor(fmt::format("blk.{}.ffn_gate_inp.weight", layer), {8, kHidden});
    file.tensor(fmt::format("blk.{}.ffn_gate_inp.scale", layer), {kHidden});
  }
  return file;
}

TEST(GgufGemma4Test, LayersWithARouterHaveExpertsBesideTheirMlp) {
  Gemma4File file;
  file.set_own("feed_forward_length", std::vector<std::int32_t>{112, 64, 32});
  const auto config = add_experts(file, {0, 2}).read();
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->layers[1].mlp, MlpConfig(DenseMlpConfig{.intermediate_size = 64}));
  for (const int layer : {0, 2}) {
    const auto& mlp = std::get<ParallelMlpConfig>(config->layers[layer].mlp);
    EXPECT_EQ(mlp.dense.intermediate_size, layer == 0 ? 112 : 32);
    EXPECT_EQ(mlp.experts, (ExpertsConfig{.num_experts = 8,
                                          .intermediate_size = 48,
                                          .rule = {.num_chosen = 2, .is_normalised = true},
                                          .has_expert_scales = true}));
  }
}

TEST(GgufGemma4Test, KeysOfExpertsAreChecked) {
  const std::tuple<const char*, std::uint32_t, const char*> wrong[] = {
      {"expert_count", 513, "expert_count: expected 0 to 512, got 513"},
      {"expert_used_count", 9, "expert_used_count: expected 1 to 8, got 9"},
      {"expert_feed_forward_length", 0, "expert_feed_forward_length: expected 1 to"},
      {"expert_gating_func", 2, "gemma4.expert_gating_func"},
  };
  for (const auto& [key, value, message] : wrong) {
    Gemma4File file;
    add_experts(file, {0, 1, 2}).set_own(key, value);
    EXPECT_THAT(file.read().status().message(), HasSubstr(message));
  }
}

TEST(GgufGemma4Test, KeysAreChecked) {
  const std::tuple<const char*, std::uint32_t, const char*> wrong[] = {
      {"attention.value_length_swa", 8, "value_length_swa: 8 in heads of 16 is not supported"},
      {"attention.shared_kv_layers", 2, "2 layers lack one before them whose cache they read"},
      {"attention.shared_kv_layers", 4, "shared_kv_layers: expected 0 to 3, got 4"},
      {"rope.dimension_count_swa", 8, "dimension_count_swa: 8 in heads of 16 is not supported"},
  };
  for (const auto& [key, value, message] : wrong)
    EXPECT_THAT(Gemma4File().set_own(key, value).read().status().message(), HasSubstr(message));
  const std::vector<std::int32_t> counts = {2, 2, 1};
  EXPECT_THAT(Gemma4File().set_own("attention.head_count_kv", counts).read().status().message(),
              HasSubstr("expected as many kv heads as the layer whose cache is read has"));
  EXPECT_EQ(GgufModel("llama").set_own("attention.shared_kv_layers", 1u).read().status().code(),
            StatusCode::kUnsupported);
}

}  // namespace
}  // namespace pagoda
