#include "model/hf/hf_config_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pagoda {
namespace {

TEST(HfConfigTest, ReadsLlama) {
  const auto config = parse(base_config("llama"));
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->architecture, "llama");
  EXPECT_EQ(config->vocab_size, 512);
  EXPECT_EQ(config->hidden_size, 64);
  EXPECT_EQ(config->layers.front().dense_mlp().intermediate_size, 112);
  EXPECT_EQ(config->num_layers(), 4);
  EXPECT_EQ(config->layers.front().attention().num_heads, 4);
  EXPECT_EQ(config->layers.front().attention().num_kv_heads, 2);
  EXPECT_EQ(config->layers.front().attention().head_dim, 16);
  EXPECT_EQ(config->max_position_embeddings, 2048);
  EXPECT_EQ(config->rms_norm_eps, 1e-5f);
  EXPECT_TRUE(config->tie_word_embeddings);
  EXPECT_EQ(config->rope_tables.front().style, RopeStyle::kHalves);
  EXPECT_EQ(config->rope_tables.front().inv_freq, rope_inverse_frequencies(16, 10000, {}));
  EXPECT_THAT(testing::windows_of(*config), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(config->eos_token_ids, ElementsAre(1));
  EXPECT_EQ(config->bos_token_id, 0);
}

TEST(HfConfigTest, DefaultsAreTransformers) {
  json config = base_config("llama");
  for (const char* key : {"num_key_value_heads", "rms_norm_eps", "hidden_act", "rope_theta",
                          "tie_word_embeddings", "eos_token_id", "bos_token_id"}) {
    config.erase(key);
  }
  const auto read = parse(config);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->layers.front().attention().num_kv_heads, 4);
  EXPECT_EQ(read->rms_norm_eps, 1e-6f);
  EXPECT_FALSE(read->tie_word_embeddings);
  EXPECT_EQ(read->rope_tables.front().inv_freq, rope_inverse_frequencies(16, 10000, {}));
  EXPECT_TRUE(read->eos_token_ids.empty());
  EXPECT_FALSE(read->bos_token_id.has_value());
}

TEST(HfConfigTest, HeadDimMayStandAlone) {
  EXPECT_EQ(
      parse(with(base_config("mistral"), {{"head_dim", 24}}))->layers.front().attention().head_dim,
      24);
  EXPECT_EQ(parse(with(base_config("llama"), {{"head_dim", nullptr}}))
                ->layers.front()
                .attention()
                .head_dim,
            16);
  EXPECT_EQ(parse(base_config("qwen3"))->layers.front().attention().head_dim, 128);
}

TEST(HfConfigTest, BiasesAreTheFamilys) {
  const json biased{{"attention_bias", true}, {"mlp_bias", true}};
  struct Case {
    const char* family;
    json changes;
    bool qkv, output, mlp;
  };
  const Case cases[] = {
      {"llama", json::object(), false, false, false}, {"llama", biased, true, true, true},
      {"mistral", biased, false, false, false},       {"qwen2", json::object(), true, false, false},
      {"qwen3", json::object(), false, false, false}, {"qwen3", biased, true, true, false},
  };
  for (const Case& c : cases) {
    const auto config = parse(with(base_config(c.family), c.changes));
    ASSERT_TRUE(config.ok()) << config.status().message();
    EXPECT_EQ(config->attention_bias, c.qkv) << c.family;
    EXPECT_EQ(config->attention_output_bias, c.output) << c.family;
    EXPECT_EQ(config->mlp_bias, c.mlp) << c.family;
  }
}

TEST(HfConfigTest, RopeOfBothGenerations) {
  const json old_keys = with(base_config("llama"), {{"rope_theta", 500000.0},
                                                    {"rope_scaling",
                                                     {{"type", "llama3"},
                                                      {"factor", 8.0},
                                                      {"low_freq_factor", 1.0},
                                                      {"high_freq_factor", 4.0},
                                                      {"original_max_position_embeddings", 64}}}});
  const json new_keys = with(without(base_config("llama"), "rope_theta"),
                             {{"rope_parameters",
                               {{"rope_type", "llama3"},
                                {"rope_theta", 500000.0},
                                {"factor", 8.0},
                                {"low_freq_factor", 1.0},
                                {"high_freq_factor", 4.0},
                                {"original_max_position_embeddings", 64}}}});
  const RopeScaling scaling{.type = RopeScalingType::kLlama3,
                            .factor = 8,
                            .low_freq_factor = 1,
                            .high_freq_factor = 4,
                            .original_positions = 64};
  const auto wanted = rope_inverse_frequencies(16, 500000, scaling);
  EXPECT_EQ(parse(old_keys)->rope_tables.front().inv_freq, wanted);
  EXPECT_EQ(parse(new_keys)->rope_tables.front().inv_freq, wanted);
  const json linear =
      with(base_config("llama"), {{"rope_scaling", {{"rope_type", "linear"}, {"factor", 2.0}}}});
  EXPECT_EQ(parse(linear)->rope_tables.front().inv_freq,
            rope_inverse_frequencies(16, 10000, {.type = RopeScalingType::kLinear, .factor = 2}));
  EXPECT_EQ(
      parse(with(base_config("llama"), {{"rope_scaling", nullptr}}))->rope_tables.front().inv_freq,
      rope_inverse_frequencies(16, 10000, {}));
}

TEST(HfConfigTest, MistralsWindowIsOnAllLayers) {
  EXPECT_THAT(testing::windows_of(*parse(with(base_config("mistral"), {{"sliding_window", 16}}))),
              ElementsAre(16, 16, 16, 16));
  EXPECT_THAT(
      testing::windows_of(*parse(with(base_config("mistral"), {{"sliding_window", nullptr}}))),
      Each(0));
  EXPECT_THAT(testing::windows_of(*parse(base_config("mistral"))), Each(4096));
  EXPECT_THAT(testing::windows_of(*parse(with(base_config("llama"), {{"sliding_window", 16}}))),
              Each(0));
}

TEST(HfConfigTest, QwensWindowIsOnTheLastLayersOrTheNamedOnes) {
  for (const char* family : {"qwen2", "qwen3"}) {
    const json off = with(base_config(family), {{"sliding_window", 8}, {"max_window_layers", 1}});
    EXPECT_THAT(testing::windows_of(*parse(off)), Each(0));
    const json on = with(off, {{"use_sliding_window", true}});
    EXPECT_THAT(testing::windows_of(*parse(on)), ElementsAre(0, 8, 8, 8));
    const json named = with(
        on, {{"layer_types",
              {"sliding_attention", "full_attention", "sliding_attention", "full_attention"}}});
    EXPECT_THAT(testing::windows_of(*parse(named)), ElementsAre(8, 0, 8, 0));
    EXPECT_THAT(testing::windows_of(*parse(with(on, {{"max_window_layers", 28}}))), Each(0));
  }
}

json gemma4_config() {
  json config = without(without(base_config("gemma4_text"), "hidden_act"), "rope_theta");
  return with(config, {{"num_hidden_layers", 6},
                       {"head_dim", 16},
                       {"global_head_dim", 32},
                       {"sliding_window", 8},
                       {"hidden_size_per_layer_input", 12},
                       {"layer_types",
                        {"sliding_attention", "full_attention", "sliding_attention",
                         "full_attention", "sliding_attention", "full_attention"}}});
}

TEST(HfConfigTest, Gemma4sFullLayersHaveHeadsOfTheirOwn) {
  const auto config = parse(gemma4_config());
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->per_layer_width, 12);
  for (const LayerConfig& each : config->layers) {
    const AttentionConfig& layer = each.attention();
    const bool is_full = layer.window == 0;
    EXPECT_EQ(layer.head_dim, is_full ? 32 : 16);
    EXPECT_EQ(layer.num_kv_heads, 2);
    EXPECT_FALSE(layer.keys_are_values);
    EXPECT_TRUE(layer.norms_values);
    EXPECT_EQ(layer.score_scale, 1);
    EXPECT_EQ(layer.kv_source, -1);
    EXPECT_EQ(config->rope_tables[layer.rope_table].inv_freq.size(), is_full ? 16u : 8u);
  }
  // A quarter of a head rotates, with the frequencies of a head that rotates as a whole.
  std::vector<float> rotated = rope_inverse_frequencies(32, 1e6, {});
  std::fill(rotated.begin() + 4, rotated.end(), 0.0f);
  EXPECT_EQ(config->rope_tables[config->layers[1].attention().rope_table].inv_freq, rotated);
  EXPECT_EQ(config->rope_tables[config->layers[0].attention().rope_table].inv_freq,
            rope_inverse_frequencies(16, 10000, {}));
}

TEST(HfConfigTest, Gemma4sFullLayersMayTakeKeysAsValues) {
  const json of_full{{"num_global_key_value_heads", 1}};
  // num_global_key_value_heads has no effect without attention_k_eq_v.
  const auto without_it = parse(with(gemma4_config(), of_full));
  ASSERT_TRUE(without_it.ok()) << without_it.status().message();
  for (const LayerConfig& layer : without_it->layers) EXPECT_EQ(layer.attention().num_kv_heads, 2);
  const auto config = parse(with(with(gemma4_config(), of_full), {{"attention_k_eq_v", true}}));
  ASSERT_TRUE(config.ok()) << config.status().message();
  for (const LayerConfig& each : config->layers) {
    const AttentionConfig& layer = each.attention();
    EXPECT_EQ(layer.num_kv_heads, layer.window == 0 ? 1 : 2);
    EXPECT_EQ(layer.keys_are_values, layer.window == 0);
  }
}

TEST(HfConfigTest, Gemma4sLayersMaySayTheirHeadsOneByOne) {
  const json of_full{{"head_dim", 48}, {"num_key_value_heads", 1}};
  const json by_layer{{"1", of_full}, {"3", of_full}, {"5", of_full}};
  // global_head_dim has no effect beside per_layer_config.
  const json changes{{"per_layer_config", by_layer}, {"attention_k_eq_v", true}};
  const auto config = parse(with(gemma4_config(), changes));
  ASSERT_TRUE(config.ok()) << config.status().message();
  for (const LayerConfig& each : config->layers) {
    const AttentionConfig& layer = each.attention();
    const bool is_full = layer.window == 0;
    EXPECT_EQ(layer.head_dim, is_full ? 48 : 16);
    EXPECT_EQ(layer.num_kv_heads, is_full ? 1 : 2);
    EXPECT_EQ(layer.keys_are_values, is_full);
    EXPECT_EQ(config->rope_tables[layer.rope_table].inv_freq.size(), is_full ? 24u : 8u);
  }
  const auto alike = parse(with(gemma4_config(), {{"per_layer_config", json::object()}}));
  ASSERT_TRUE(alike.ok()) << alike.status().message();
  for (const LayerConfig& layer : alike->layers) EXPECT_EQ(layer.attention().head_dim, 16);
}

TEST(HfConfigTest, Gemma4sLateLayersReadTheLastCacheOfTheirKind) {
  const json changes{{"num_kv_shared_layers", 3}, {"use_double_wide_mlp", true}};
  const auto config = parse(with(gemma4_config(), changes));
  ASSERT_TRUE(config.ok()) << config.status().message();
  const std::vector<int> sources = {-1, -1, -1, 1, 2, 1};
  for (int i = 0; i < config->num_layers(); ++i) {
    EXPECT_EQ(config->layers[i].attention().kv_source, sources[i]) << i;
    EXPECT_EQ(config->layers[i].dense_mlp().intermediate_size, i < 3 ? 112 : 224) << i;
  }
}

TEST(HfConfigTest, Gemma4sLastLayerSeesAll) {
  const json six = without(gemma4_config(), "layer_types");
  EXPECT_THAT(testing::windows_of(*parse(six)), ElementsAre(8, 8, 8, 8, 8, 0));
  EXPECT_THAT(testing::windows_of(*parse(with(six, {{"num_hidden_layers", 3}}))),
              ElementsAre(8, 8, 0));
}

// The config of google/gemma-4-26B-A4B-it, without its towers.
TEST(HfConfigTest, ReadsGemma4sMixture) {
  const json rope{
      {"full_attention",
       {{"partial_rotary_factor", 0.25}, {"rope_theta", 1000000.0}, {"rope_type", "proportional"}}},
      {"sliding_attention", {{"rope_theta", 10000.0}, {"rope_type", "default"}}}};
  const json text{{"model_type", "gemma4_text"},
                  {"attention_k_eq_v", true},
                  {"enable_moe_block", true},
                  {"final_logit_softcapping", 30.0},
                  {"global_head_dim", 512},
                  {"head_dim", 256},
                  {"hidden_activation", "gelu_pytorch_tanh"},
                  {"hidden_size", 2816},
                  {"hidden_size_per_layer_input", 0},
                  {"intermediate_size", 2112},
                  {"max_position_embeddings", 262144},
                  {"moe_intermediate_size", 704},
                  {"num_attention_heads", 16},
                  {"num_experts", 128},
                  {"num_global_key_value_heads", 2},
                  {"num_hidden_layers", 30},
                  {"num_key_value_heads", 8},
                  {"num_kv_shared_layers", 0},
                  {"rope_parameters", rope},
                  {"sliding_window", 1024},
                  {"top_k_experts", 8}};
  const auto config = parse({{"model_type", "gemma4"}, {"text_config", text}});
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->num_layers(), 30);
  const ExpertsConfig experts = {.num_experts = 128,
                                 .intermediate_size = 704,
                                 .rule = {.num_chosen = 8, .is_normalised = true},
                                 .has_expert_scales = true};
  const MlpConfig expected =
      ParallelMlpConfig{.dense = {.intermediate_size = 2112}, .experts = experts};
  for (const LayerConfig& layer : config->layers) EXPECT_EQ(layer.mlp, expected);
  EXPECT_EQ(config->num_idle_parameters(), std::int64_t{30} * 120 * 3 * 704 * 2816);
}

TEST(HfConfigTest, Gemma4sExpertsAreOffUnlessTheConfigSaysOtherwise) {
  const json sizes{{"num_experts", 8}, {"top_k_experts", 2}, {"moe_intermediate_size", 48}};
  const auto off = parse(with(gemma4_config(), sizes));
  ASSERT_TRUE(off.ok()) << off.status().message();
  EXPECT_EQ(off->num_idle_parameters(), 0);
  const json both{
      {"enable_moe_block", true}, {"num_kv_shared_layers", 3}, {"use_double_wide_mlp", true}};
  const auto on = parse(with(with(gemma4_config(), sizes), both));
  ASSERT_TRUE(on.ok()) << on.status().message();
  for (int i = 0; i < on->num_layers(); ++i) {
    const auto& mlp = std::get<ParallelMlpConfig>(on->layers[i].mlp);
    EXPECT_EQ(mlp.dense.intermediate_size, i < 3 ? 112 : 224) << i;
    EXPECT_EQ(mlp.experts.intermediate_size, 48) << i;
  }
}

TEST(HfConfigTest, Gemma3sTowerDoesNotBendItsLogits) {
  const json text = with(without(base_config("gemma3_text"), "hidden_act"), {{"head_dim", 16}});
  const auto tower = [&](const json& changes) {
    return json{{"model_type", "gemma3"}, {"text_config", with(text, changes)}};
  };
  EXPECT_TRUE(parse(tower({{"final_logit_softcapping", nullptr}})).ok());
  EXPECT_THAT(parse(tower({{"final_logit_softcapping", 30.0}})).status().message(),
              HasSubstr("text_config: final_logit_softcapping is not supported for "
                        "Gemma3ForConditionalGeneration"));
}

TEST(HfConfigTest, GenerationConfigReplacesTokenIds) {
  const json two_ends = with(base_config("llama"), {{"eos_token_id", {5, 6}}});
  EXPECT_THAT(parse(two_ends)->eos_token_ids, ElementsAre(5, 6));
  EXPECT_THAT(parse(two_ends, R"({"eos_token_id": [7, 8, 9]})")->eos_token_ids,
              ElementsAre(7, 8, 9));
  EXPECT_THAT(parse(two_ends, R"({"eos_token_id": null, "bos_token_id": 3})")->eos_token_ids,
              ElementsAre(5, 6));
  EXPECT_EQ(parse(two_ends, R"({"bos_token_id": 3})")->bos_token_id, 3);
}

TEST(HfConfigTest, ReadsGenerationDefaults) {
  const auto defaults = parse_hf_generation_defaults(
      R"({"do_sample": true, "temperature": 0.6, "top_p": 0.9, "top_k": 20, "min_p": 0,
          "repetition_penalty": 1.05, "eos_token_id": 2})");
  ASSERT_TRUE(defaults.ok()) << defaults.status().message();
  EXPECT_EQ(defaults->temperature, 0.6f);
  EXPECT_EQ(defaults->top_p, 0.9f);
  EXPECT_EQ(defaults->top_k, 20);
  EXPECT_EQ(defaults->min_p, 0.0f);
  EXPECT_EQ(defaults->repetition_penalty, 1.05f);
  const auto none = parse_hf_generation_defaults("");
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(none->temperature.has_value());
  const Status wrong = parse_hf_generation_defaults(R"({"top_p": 1.5})").status();
  EXPECT_EQ(wrong.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(wrong.message(),
              HasSubstr("generation_config.json: top_p: expected a number of 0 to 1"));
}

TEST(HfConfigTest, AffineGroupsAreTheCheckpointsAffair) {
  const json groups{{"group_size", 64}, {"bits", 4}, {"mode", "affine"}, {"lm_head", false}};
  for (const char* key : {"quantization", "quantization_config"}) {
    const auto config = parse(with(base_config("llama"), {{key, groups}}));
    EXPECT_TRUE(config.ok()) << config.status().message();
  }
}

}  // namespace
}  // namespace pagoda
