#include "model/gguf/gguf_config_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "tests/support/case_name.h"

namespace pagoda {
namespace {

TEST(GgufConfigTest, Phi3sAttentionFactorCountsWithoutLongFactors) {
  const auto config = GgufModel("phi3").set_own("rope.scaling.attn_factor", 1.25f).read();
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->rope_tables.front().factor, 1.25f);
}

TEST(GgufConfigTest, ReadsLlama) {
  const auto config = GgufModel("llama").read();
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->architecture, "llama");
  EXPECT_EQ(config->vocab_size, kVocab);
  EXPECT_EQ(config->hidden_size, kHidden);
  EXPECT_EQ(config->layers[0].dense_mlp().intermediate_size, 112);
  EXPECT_EQ(config->num_layers(), 3);
  EXPECT_EQ(config->layers.front().attention().num_heads, 4);
  EXPECT_EQ(config->layers.front().attention().num_kv_heads, 2);
  EXPECT_EQ(config->layers.front().attention().head_dim, 16);
  EXPECT_EQ(config->max_position_embeddings, 2048);
  EXPECT_EQ(config->rms_norm_eps, 1e-5f);
  EXPECT_TRUE(config->tie_word_embeddings);
  EXPECT_FALSE(config->attention_bias || config->attention_output_bias || config->mlp_bias);
  EXPECT_EQ(config->rope_tables.front().style, RopeStyle::kAdjacent);
  EXPECT_EQ(config->rope_tables.front().inv_freq, rope_inverse_frequencies(16, 10000, {}));
  EXPECT_THAT(testing::windows_of(*config), ElementsAre(0, 0, 0));
  EXPECT_THAT(config->eos_token_ids, ElementsAre(2));
  EXPECT_EQ(config->bos_token_id, 1);
}

TEST(GgufConfigTest, QwenPairsHalvesAndHasItsOwnHeadDim) {
  GgufModel model("qwen3");
  model.set_own("attention.key_length", 32u).set_own("attention.value_length", 32u);
  model.set_own("rope.freq_base", 1e6f);
  const auto config = model.read();
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->rope_tables.front().style, RopeStyle::kHalves);
  EXPECT_EQ(config->layers.front().attention().head_dim, 32);
  EXPECT_EQ(config->rope_tables.front().inv_freq, rope_inverse_frequencies(32, 1e6, {}));
}

TEST(GgufConfigTest, TensorsSayWhatIsTiedAndBiased) {
  GgufModel model("qwen2");
  model.tensor("output.weight", {kVocab, kHidden});
  model.tensor("blk.0.attn_q.bias", {kHidden}).tensor("blk.0.attn_output.bias", {kHidden});
  model.tensor("blk.0.ffn_up.bias", {112});
  const auto config = model.read();
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_FALSE(config->tie_word_embeddings);
  EXPECT_TRUE(config->attention_bias);
  EXPECT_TRUE(config->attention_output_bias);
  EXPECT_TRUE(config->mlp_bias);
}

TEST(GgufConfigTest, RopeFactorsDivideEachPair) {
  const std::vector<float> divisors{1, 1, 1, 2, 4, 8, 8, 8};
  const auto config = GgufModel("llama").tensor("rope_freqs.weight", {8}, divisors).read();
  ASSERT_TRUE(config.ok()) << config.status().message();
  const auto plain = rope_inverse_frequencies(16, 10000, {});
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(config->rope_tables.front().inv_freq[i], plain[i] / divisors[i]);
}

TEST(GgufConfigTest, LinearScalingInAllItsSpellings) {
  const auto wanted =
      rope_inverse_frequencies(16, 10000, {.type = RopeScalingType::kLinear, .factor = 4});
  GgufModel typed("llama");
  typed.set_own("rope.scaling.type", "linear").set_own("rope.scaling.factor", 4.0f);
  EXPECT_EQ(typed.read()->rope_tables.front().inv_freq, wanted);
  EXPECT_EQ(
      GgufModel("llama").set_own("rope.scaling.factor", 4.0f).read()->rope_tables.front().inv_freq,
      wanted);
  EXPECT_EQ(
      GgufModel("llama").set_own("rope.scale_linear", 4.0f).read()->rope_tables.front().inv_freq,
      wanted);
  typed.set_own("rope.scaling.type", "none");
  EXPECT_EQ(typed.read()->rope_tables.front().inv_freq, rope_inverse_frequencies(16, 10000, {}));
}

// A frequency divided by the smallest of floats is infinite.
TEST(GgufConfigTest, AFactorIsZeroOrInItsRange) {
  EXPECT_EQ(
      GgufModel("llama").set_own("rope.scaling.factor", 0.0f).read()->rope_tables.front().inv_freq,
      rope_inverse_frequencies(16, 10000, {}));
  for (const float factor : {2e-41f, 9e-7f, -1.0f, 2e6f}) {
    const Status status = GgufModel("llama").set_own("rope.scaling.factor", factor).read().status();
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << factor;
    EXPECT_THAT(status.message(), HasSubstr("rope.scaling.factor: expected"));
  }
}

TEST(GgufConfigTest, AWindowMakesALlamaAMistral) {
  const auto config = GgufModel("llama").set_own("attention.sliding_window", 16u).read();
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->architecture, "mistral");
  EXPECT_EQ(config->rope_tables.front().style, RopeStyle::kAdjacent);
  EXPECT_THAT(testing::windows_of(*config), Each(16));
}

TEST(GgufConfigTest, CountsMayBeRepeatedForEachLayer) {
  GgufModel model("llama");
  model.set_own("attention.head_count_kv", std::vector<std::int32_t>{2, 2, 2});
  EXPECT_EQ(model.read()->layers.front().attention().num_kv_heads, 2);
  for (const auto& counts : {std::vector<std::int32_t>{}, {2, 2}, {2, 2, 2, 2}}) {
    model.set_own("attention.head_count_kv", counts);
    const Status status = model.read().status();
    EXPECT_EQ(status.code(), StatusCode::kDataLoss);
    EXPECT_THAT(status.message(),
                HasSubstr("head_count_kv: expected a value for each of 3 layers"));
  }
}

TEST(GgufConfigTest, CountsMayDifferByLayer) {
  GgufModel model("llama");
  model.set_own("attention.head_count", std::vector<std::int32_t>{4, 2, 8});
  model.set_own("attention.head_count_kv", std::vector<std::int32_t>{2, 1, 4});
  model.set_own("feed_forward_length", std::vector<std::int32_t>{32, 112, 64});
  const auto config = model.read();
  ASSERT_TRUE(config.ok()) << config.status().message();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(config->layers[i].attention().num_heads, (std::vector{4, 2, 8}[i]));
    EXPECT_EQ(config->layers[i].attention().num_kv_heads, (std::vector{2, 1, 4}[i]));
    EXPECT_EQ(config->layers[i].dense_mlp().intermediate_size, (std::vector{32, 112, 64}[i]));
  }
}

TEST(GgufConfigTest, BookkeepingAndNeutralValuesAreHarmless) {
  GgufModel model("llama");
  model.set("general.name", "a name").set("general.base_model.0.name", "another");
  model.set("general.type", "model").set("quantize.imatrix.file", "imatrix.dat");
  model.set("mradermacher.quantized_by", "somebody").set("tokenizer.chat_template.tool_use", "{}");
  model.set("tokenizer.ggml.padding_token_id", 0u).set_own("vocab_size", 8u);
  model.set_own("attention.causal", true).set_own("pooling_type", 3u);
  model.set_own("rope.scaling.attn_factor", 1.0f).set_own("expert_count", 0u);
  const auto config = model.read();
  EXPECT_TRUE(config.ok()) << config.status().message();
}

TEST(GgufConfigTest, ARerankerHasAHeadForScoresAndNoneForTokens) {
  GgufModel model("llama");
  model.set_own("pooling_type", 4u);
  model.set_own("classifier.output_labels", std::vector<std::string>{"yes", "no"});
  const auto config = model.read();
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_TRUE(config->has_score_head);
  EXPECT_FALSE(config->has_head);
}

TEST(GgufConfigTest, SpecialIdsBeyondTheVocabularyAreDropped) {
  GgufModel model("llama");
  model.set("tokenizer.ggml.bos_token_id", -1).set("tokenizer.ggml.eos_token_id", 8u);
  model.set("tokenizer.ggml.eot_token_id", 4294967295u);
  const auto config = model.read();
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_FALSE(config->bos_token_id.has_value());
  EXPECT_TRUE(config->eos_token_ids.empty());
}

TEST(GgufConfigTest, ReadsSamplingDefaults) {
  GgufModel model("llama");
  const auto none = read_generation_defaults(model.open());
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(none->temperature || none->top_p || none->top_k || none->min_p);
  model.set("general.sampling.temp", 0.7f).set("general.sampling.top_p", 0.8f);
  model.set("general.sampling.top_k", 20).set("general.sampling.min_p", 0.05f);
  model.set("general.sampling.penalty_repeat", 1.1f);
  const auto defaults = read_generation_defaults(model.open());
  ASSERT_TRUE(defaults.ok()) << defaults.status().message();
  EXPECT_EQ(defaults->temperature, 0.7f);
  EXPECT_EQ(defaults->top_p, 0.8f);
  EXPECT_EQ(defaults->top_k, 20);
  EXPECT_EQ(defaults->min_p, 0.05f);
  EXPECT_EQ(defaults->repetition_penalty, 1.1f);
  EXPECT_FALSE(defaults->mirostat || defaults->xtc_probability);
  model.set("general.sampling.temp", -1.0f);
  EXPECT_THAT(read_generation_defaults(model.open()).status().message(),
              HasSubstr("general.sampling.temp: expected 0 to 1000, got -1"));
}

TEST(GgufConfigTest, SamplingDefaultsAreThoseOfLlamaCppAsFarAsTheyGo) {
  GgufModel model("llama");
  model.set("general.sampling.xtc_probability", 0.5f).set("general.sampling.xtc_threshold", 0.2f);
  model.set("general.sampling.mirostat", 2).set("general.sampling.mirostat_tau", 4.0f);
  model.set("general.sampling.mirostat_eta", 0.2f).set("general.sampling.sequence", "kpt");
  model.set("general.sampling.penalty_repeat", 1.1f).set("general.sampling.penalty_last_n", 0);
  const auto defaults = read_generation_defaults(model.open());
  ASSERT_TRUE(defaults.ok()) << defaults.status().message();
  EXPECT_EQ(defaults->xtc_probability, 0.5f);
  EXPECT_EQ(defaults->xtc_threshold, 0.2f);
  EXPECT_EQ(defaults->mirostat, 2);
  EXPECT_EQ(defaults->mirostat_tau, 4.0f);
  EXPECT_EQ(defaults->mirostat_eta, 0.2f);
  EXPECT_FALSE(defaults->repetition_penalty.has_value());  // a penalty over 0 tokens
  EXPECT_FALSE(defaults->repeat_last_n.has_value());
  model.set("general.sampling.mirostat", 1).set("general.sampling.penalty_last_n", 64);
  const auto others = read_generation_defaults(model.open());
  ASSERT_TRUE(others.ok()) << others.status().message();
  EXPECT_EQ(others->mirostat, 1);
  EXPECT_EQ(others->repetition_penalty, 1.1f);
  EXPECT_EQ(others->repeat_last_n, 64);
}

struct Refused {
  const char* name;
  std::function<void(GgufModel&)> change;
  StatusCode code;
  const char* message;
};

void PrintTo(const Refused& refused, std::ostream* out) {
  *out << refused.name;
}

std::vector<Refused> refused_keys() {
  constexpr auto kBad = StatusCode::kDataLoss;
  constexpr auto kUnsupported = StatusCode::kUnsupported;
  return {
      {"UnknownArchitecture", [](GgufModel& m) { m.set("general.architecture", "mamba"); },
       kUnsupported, "architecture mamba is not supported; these are: llama, qwen2, qwen3, gemma2"},
      {"UnknownArchitectureWithParts",
       [](GgufModel& m) {
         m.set("general.architecture", "jamba");
         m.set("jamba.expert_count", 8u).set("jamba.ssm.state_size", 16u);
       },
       kUnsupported,
       "architecture jamba with experts and recurrent states is not supported; these are: "},
      {"NoArchitecture", [](GgufModel& m) { m.erase("general.architecture"); },
       StatusCode::kNotFound, "key general.architecture is missing"},
      {"LayersMissing", [](GgufModel& m) { m.erase("llama.block_count"); }, StatusCode::kNotFound,
       "key llama.block_count is missing"},
      {"LayersOfText", [](GgufModel& m) { m.set_own("block_count", "3"); }, kBad,
       "key llama.block_count: expected an integer, got string"},
      {"LayersAbsurd", [](GgufModel& m) { m.set_own("block_count", 4000000000u); }, kBad,
       "key llama.block_count: expected 1 to 1024, got 4000000000"},
      {"HiddenZero", [](GgufModel& m) { m.set_own("embedding_length", 0u); }, kBad,
       "llama.embedding_length: expected 1 to 1048576, got 0"},
      {"HeadsDoNotDivide", [](GgufModel& m) { m.set_own("attention.head_count", 5u); }, kBad,
       "expected a multiple of 5 heads, got 64"},
      {"KvHeadsDoNotDivide", [](GgufModel& m) { m.set_own("attention.head_count_kv", 3u); },
       StatusCode::kInvalidArgument, "multiple of kv heads"},
      {"HeadDimOdd", [](GgufModel& m) { m.set_own("attention.key_length", 15u); },
       StatusCode::kInvalidArgument, "expected an even head_dim"},
      {"ValueLengthDiffers", [](GgufModel& m) { m.set_own("attention.value_length", 8u); },
       kUnsupported, "llama.attention.value_length: 8 in heads of 16"},
      {"PartialRotary", [](GgufModel& m) { m.set_own("rope.dimension_count", 8u); }, kUnsupported,
       "llama.rope.dimension_count: 8 in heads of 16"},
      {"EpsNan",
       [](GgufModel& m) {
         m.set_own("attention.layer_norm_rms_epsilon", std::numeric_limits<float>::quiet_NaN());
       },
       kBad, "llama.attention.layer_norm_rms_epsilon"},
      {"ThetaInfinite",
       [](GgufModel& m) { m.set_own("rope.freq_base", std::numeric_limits<float>::infinity()); },
       kBad, "llama.rope.freq_base"},
      {"LongRope", [](GgufModel& m) { m.set_own("rope.scaling.type", "longrope"); }, kUnsupported,
       "llama.rope.scaling.type: longrope is not supported"},
      {"LogitScale", [](GgufModel& m) { m.set_own("logit_scale", 0.5f); }, kUnsupported,
       "llama.logit_scale: 0.5 is not supported"},
      {"WindowPattern", [](GgufModel& m) { m.set_own("attention.sliding_window_pattern", 2u); },
       kUnsupported, "sliding_window_pattern is not supported"},
  };
}

std::vector<Refused> refused_variants() {
  constexpr auto kUnsupported = StatusCode::kUnsupported;
  return {
      {"SeesWhatComesLater", [](GgufModel& m) { m.set_own("attention.causal", false); },
       kUnsupported, "llama.attention.causal: false is not supported"},
      {"UnknownPooling", [](GgufModel& m) { m.set_own("pooling_type", 5u); }, kUnsupported,
       "llama.pooling_type: 5 is not supported"},
      {"AttentionFactor", [](GgufModel& m) { m.set_own("rope.scaling.attn_factor", 1.19f); },
       kUnsupported, "llama.rope.scaling.attn_factor: 1.19 is not supported"},
      {"YarnsFactorWithoutYarn",
       [](GgufModel& m) { m.set_own("rope.scaling.yarn_attn_factor", 1.5f); }, kUnsupported,
       "llama.rope.scaling.yarn_attn_factor: 1.5 is not supported without rope.scaling.type yarn"},
      {"YarnsFactorBesideLinear",
       [](GgufModel& m) {
         m.set_own("rope.scaling.type", "linear");
         m.set_own("rope.scaling.factor", 2.0f);
         m.set_own("rope.scaling.yarn_attn_factor", 1.5f);
       },
       kUnsupported, "rope.scaling.yarn_attn_factor: 1.5 is not supported without"},
      {"TemperatureByPosition",
       [](GgufModel& m) { m.set_own("attention.temperature_scale", 0.1f); }, kUnsupported,
       "llama.attention.temperature_scale: 0.1 is not supported"},
      {"Adapter", [](GgufModel& m) { m.set("general.type", "adapter"); }, kUnsupported,
       "general.type: \"adapter\" is not supported"},
      {"KeyOfTheArchitectureThatNobodyKnows",
       [](GgufModel& m) { m.set_own("attention.gate", true); }, kUnsupported,
       "llama.attention.gate is not supported: it is not known and may change the answer"},
      {"TokensNeverSampled",
       [](GgufModel& m) { m.set("tokenizer.ggml.suppress_tokens", std::vector<std::int32_t>{3}); },
       kUnsupported, "tokenizer.ggml.suppress_tokens: [1 x int32] is not supported"},
      {"AdapterKeys", [](GgufModel& m) { m.set("adapter.type", "lora"); }, kUnsupported,
       "key adapter.type is not supported"},
  };
}

std::vector<Refused> refused_tensors_and_tokens() {
  constexpr auto kBad = StatusCode::kDataLoss;
  return {
      {"EmbeddingOfWrongWidth",
       [](GgufModel& m) {
         m.tensor("token_embd.weight", {8, 32});
       },
       kBad, "tensor token_embd.weight: expected vocabulary x 64, got 8 x 32"},
      {"EmbeddingOfOneDimension", [](GgufModel& m) { m.tensor("token_embd.weight", {64}); }, kBad,
       "expected vocabulary x 64, got 64"},
      {"RopeFactorsTooFew", [](GgufModel& m) { m.tensor("rope_freqs.weight", {7}); }, kBad,
       "tensor rope_freqs.weight: expected 8 values of F32, got 7 of F32"},
      {"LongRopeOfOneSide",
       [](GgufModel& m) {
         m.tensor("rope_factors_long.weight", {8}, {1, 1, 1, 1, 1, 1, 1, 1});
       },
       StatusCode::kUnsupported,
       "rope_factors_long.weight is not supported without rope_factors_short.weight beside it"},
      {"RopeFactorZero", [](GgufModel& m) { m.tensor("rope_freqs.weight", {8}, {0}); }, kBad,
       "expected divisors"},
      {"TokensBeyondVocabulary",
       [](GgufModel& m) {
         m.set("tokenizer.ggml.tokens", std::vector<std::string>(9, "x"));
         m.set("tokenizer.ggml.token_type", std::vector<std::int32_t>(9, 1));
       },
       kBad, "tokenizer.ggml.tokens: expected at most 8 tokens, got 9"},
      {"TypesTooFew",
       [](GgufModel& m) {
         m.set("tokenizer.ggml.tokens", std::vector<std::string>(8, "x"));
         m.set("tokenizer.ggml.token_type", std::vector<std::int32_t>(7, 1));
       },
       kBad, "tokenizer.ggml.token_type: expected 8 types, got 7"},
  };
}

std::vector<Refused> refused_experts() {
  constexpr auto kBad = StatusCode::kDataLoss;
  return {
      {"ExpertsWithoutChoice", [](GgufModel& m) { m.set_own("expert_count", 8u); },
       StatusCode::kNotFound, "llama.expert_used_count is missing"},
      {"ExpertsTooMany",
       [](GgufModel& m) { m.set_own("expert_count", 513u).set_own("expert_used_count", 2u); }, kBad,
       "llama.expert_count: expected 0 to 512, got 513"},
      {"ExpertsFewerThanChosen",
       [](GgufModel& m) { m.set_own("expert_count", 2u).set_own("expert_used_count", 3u); }, kBad,
       "llama.expert_used_count: expected 1 to 2, got 3"},
      {"ExpertsByAnotherFunction",
       [](GgufModel& m) {
         m.set_own("expert_count", 8u).set_own("expert_used_count", 2u);
         m.set_own("expert_gating_func", 4u);
       },
       StatusCode::kUnsupported, "llama.expert_gating_func: routing function 4 is not supported"},
  };
}

class RefusedKeyTest : public ::testing::TestWithParam<Refused> {};

TEST_P(RefusedKeyTest, IsRefusedByName) {
  GgufModel model("llama");
  GetParam().change(model);
  const Status status = model.read().status();
  EXPECT_EQ(status.code(), GetParam().code) << status.message();
  EXPECT_THAT(status.message(), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(Experts, RefusedKeyTest, ::testing::ValuesIn(refused_experts()),
                         testing::kCaseName);
INSTANTIATE_TEST_SUITE_P(Keys, RefusedKeyTest, ::testing::ValuesIn(refused_keys()),
                         testing::kCaseName);
INSTANTIATE_TEST_SUITE_P(Variants, RefusedKeyTest, ::testing::ValuesIn(refused_variants()),
                         testing::kCaseName);
INSTANTIATE_TEST_SUITE_P(TensorsAndTokens, RefusedKeyTest,
                         ::testing::ValuesIn(refused_tensors_and_tokens()), testing::kCaseName);

}  // namespace
}  // namespace pagoda
