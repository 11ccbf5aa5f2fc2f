// Configs that are refused, with a message that names the wrong key.
#include "model/hf/hf_config_fixture.h"
#include "tests/support/case_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pagoda {
namespace {

struct RefusedConfig {
  const char* name;
  const char* family;
  json changes;
  StatusCode code;
  const char* message;
};

void PrintTo(const RefusedConfig& refused, std::ostream* out) {
  *out << refused.name;
}

std::vector<RefusedConfig> refused_sizes() {
  constexpr auto kInvalid = StatusCode::kInvalidArgument;
  return {
      {"HiddenOfText",
       "llama",
       {{"hidden_size", "64"}},
       kInvalid,
       "config.json: hidden_size: expected an integer of 1 to 1048576, got \"64\""},
      {"HiddenMissing",
       "llama",
       {{"hidden_size", nullptr}},
       kInvalid,
       "hidden_size: expected an integer of 1 to 1048576, but it is missing"},
      {"HiddenZero", "llama", {{"hidden_size", 0}}, kInvalid, "got 0"},
      {"HiddenNegative", "llama", {{"hidden_size", -64}}, kInvalid, "got -64"},
      {"HiddenFraction", "llama", {{"hidden_size", 64.5}}, kInvalid, "got 64.5"},
      {"HiddenBeyond64Bits",
       "llama",
       {{"hidden_size", 18446744073709551615u}},
       kInvalid,
       "got 18446744073709551615"},
      {"LayersAbsurd",
       "llama",
       {{"num_hidden_layers", 1000000}},
       kInvalid,
       "num_hidden_layers: expected an integer of 1 to 1024"},
      {"VocabAbsurd", "llama", {{"vocab_size", 1 << 30}}, kInvalid, "vocab_size"},
      {"HeadsDoNotDivide",
       "llama",
       {{"num_attention_heads", 3}, {"num_key_value_heads", 3}},
       kInvalid,
       "expected hidden_size to be a multiple of 3 heads, got 64"},
      {"KvHeadsDoNotDivide",
       "llama",
       {{"num_key_value_heads", 3}},
       kInvalid,
       "expected heads to be a multiple of kv heads, got 4 and 3"},
      {"HeadDimOdd", "llama", {{"head_dim", 15}}, kInvalid, "expected an even head_dim"},
      {"HeadDimDerivedTooLarge",
       "llama",
       {{"hidden_size", 1 << 20}},
       kInvalid,
       "expected an even head_dim of 2 to 1024, got 262144"},
  };
}

std::vector<RefusedConfig> refused_values() {
  constexpr auto kInvalid = StatusCode::kInvalidArgument;
  return {
      {"EpsZero", "llama", {{"rms_norm_eps", 0.0}}, kInvalid, "rms_norm_eps"},
      {"EpsNegative", "llama", {{"rms_norm_eps", -1e-6}}, kInvalid, "rms_norm_eps"},
      {"ThetaNegative", "llama", {{"rope_theta", -10000.0}}, kInvalid, "rope_theta"},
      {"TieOfText",
       "llama",
       {{"tie_word_embeddings", "yes"}},
       kInvalid,
       "tie_word_embeddings: expected true or false, got \"yes\""},
      {"Gelu",
       "llama",
       {{"hidden_act", "gelu"}},
       StatusCode::kUnsupported,
       "hidden_act gelu is not supported; silu and gelu_pytorch_tanh are"},
      {"Quantised",
       "llama",
       {{"quantization_config", {{"quant_method", "gptq"}}}},
       StatusCode::kUnsupported,
       "config.json: quantization_config: quant_method \"gptq\" is not supported"},
      {"QuantisedInAnotherMode",
       "llama",
       {{"quantization", {{"group_size", 16}, {"bits", 4}, {"mode", "nvfp4"}}}},
       StatusCode::kUnsupported,
       "config.json: quantization: mode \"nvfp4\" is not supported"},
      {"PartialRotary",
       "llama",
       {{"partial_rotary_factor", 0.5}},
       StatusCode::kUnsupported,
       "partial_rotary_factor 0.5"},
      {"UnknownArchitecture", "seed_oss", json::object(), StatusCode::kUnsupported,
       "architecture seed_oss is not supported; these are: llama, mistral, qwen2, qwen3, "},
      {"UnknownArchitectureWithParts",
       "deepseek_v3",
       {{"n_routed_experts", 256}, {"kv_lora_rank", 512}, {"mamba_d_conv", nullptr}},
       StatusCode::kUnsupported,
       "architecture deepseek_v3 with latent attention and experts is not supported; these are: "},
      {"UnknownTowerWithParts",
       "qwen3_5_moe",
       {{"text_config", {{"linear_num_key_heads", 16}, {"num_experts", 8}}}},
       StatusCode::kUnsupported,
       "architecture qwen3_5_moe with recurrent states and experts is not supported"},
      {"UnknownArchitectureThatUsesNoParts",
       "seed_oss",
       {{"num_experts", 0}, {"is_encoder_decoder", false}},
       StatusCode::kUnsupported,
       "architecture seed_oss is not supported"},
  };
}

std::vector<RefusedConfig> refused_ropes() {
  constexpr auto kInvalid = StatusCode::kInvalidArgument;
  return {
      {"Dynamic",
       "qwen2",
       {{"rope_scaling", {{"type", "dynamic"}, {"factor", 4.0}}}},
       StatusCode::kUnsupported,
       "rope type dynamic is not supported: a cached key would depend on how long a context"},
      {"YarnStretchedByNothing",
       "qwen2",
       {{"rope_scaling", {{"type", "yarn"}, {"factor", 0}}}},
       kInvalid,
       "rope_scaling: factor: expected a number"},
      {"YarnOfNoTheta",
       "qwen2",
       {{"rope_theta", 1}, {"rope_scaling", {{"type", "yarn"}, {"factor", 2}}}},
       kInvalid,
       "rope_theta: expected more than 1 beside yarn, got 1"},
      {"NumberOfAnotherType",
       "llama",
       {{"rope_scaling", {{"type", "linear"}, {"factor", 2.0}, {"beta_fast", 32}}}},
       StatusCode::kUnsupported,
       "beta_fast beside rope type linear is not supported"},
      {"RopeParametersByLayerType",
       "qwen3",
       {{"rope_parameters", {{"full_attention", {{"rope_type", "default"}}}}}},
       StatusCode::kUnsupported,
       "rope_parameters: blocks that differ by layer type are not supported"},
      {"UnknownType",
       "llama",
       {{"rope_scaling", {{"rope_type", "spiral"}}}},
       StatusCode::kUnsupported,
       "rope type spiral is not supported; default, linear, llama3, yarn, longrope and "
       "proportional are"},
      {"RopeScalingOfText",
       "llama",
       {{"rope_scaling", "linear"}},
       kInvalid,
       "rope_scaling: expected an object"},
      {"LinearWithoutFactor",
       "llama",
       {{"rope_scaling", {{"type", "linear"}}}},
       kInvalid,
       "rope_scaling: factor: expected a number"},
      {"Llama3FactorsCrossed",
       "llama",
       {{"rope_scaling",
         {{"type", "llama3"},
          {"factor", 8},
          {"low_freq_factor", 4},
          {"high_freq_factor", 4},
          {"original_max_position_embeddings", 64}}}},
       kInvalid,
       "high_freq_factor: expected more than low_freq_factor (4), got 4"},
  };
}

std::vector<RefusedConfig> refused_long_ropes() {
  constexpr auto kInvalid = StatusCode::kInvalidArgument;
  return {
      {"LongRopeWithoutFactors",
       "phi3",
       {{"rope_scaling", {{"rope_type", "longrope"}}}},
       kInvalid,
       "rope_scaling: long_factor: expected 8 numbers, but it is missing"},
      {"LongRopeOfTooFewFactors",
       "phi3",
       {{"rope_scaling",
         {{"rope_type", "longrope"}, {"long_factor", {1, 2}}, {"short_factor", {1, 2}}}}},
       kInvalid,
       "rope_scaling: long_factor: expected 8 numbers, got [1,2]"},
      {"RotatedLayersTooFew",
       "smollm3",
       {{"no_rope_layers", {1, 0}}},
       kInvalid,
       "no_rope_layers: expected a list of 4 layers"},
  };
}

std::vector<RefusedConfig> refused_windows() {
  constexpr auto kInvalid = StatusCode::kInvalidArgument;
  const json sliding(std::vector<std::string>(4, "sliding_attention"));
  return {
      {"WindowZero", "mistral", {{"sliding_window", 0}}, kInvalid, "sliding_window"},
      {"LayerTypesTooFew",
       "qwen2",
       {{"layer_types", {"full_attention"}}},
       kInvalid,
       "layer_types: expected a list of 4 layers"},
      {"LayerTypeUnknown",
       "qwen3",
       {{"layer_types", std::vector<std::string>(4, "chunked_attention")}},
       StatusCode::kUnsupported,
       "layer type \"chunked_attention\" is not supported"},
      {"SlidingLayersWithoutWindow",
       "qwen3",
       {{"layer_types", sliding}},
       kInvalid,
       "sliding_window is off"},
  };
}

// Returns a config of GLM-4.5 with 8 experts in 4 groups, of which a token has 2, and with `changes`.
json mixture(const json& changes) {
  json config = {{"n_routed_experts", 8},
                 {"num_experts_per_tok", 3},
                 {"n_group", 4},
                 {"topk_group", 2},
                 {"moe_intermediate_size", 48}};
  config.update(changes);
  return config;
}

std::vector<RefusedConfig> refused_mixtures() {
  constexpr auto kInvalid = StatusCode::kInvalidArgument;
  return {
      {"GroupsDiffer", "glm4_moe", mixture({{"n_group", 3}}), kInvalid,
       "expected experts in 3 groups of equal size, got 8"},
      {"GroupsAreTooSmall", "glm4_moe", mixture({{"topk_group", 1}}), kInvalid,
       "expected at most 2 experts of a token, those of 1 of 4 groups, got 3"},
      {"MoreGroupsThanThereAre", "glm4_moe", mixture({{"topk_group", 5}}), kInvalid,
       "topk_group: expected an integer of 1 to 4, got 5"},
      {"MoreExpertsThanThereAre", "glm4_moe", mixture({{"num_experts_per_tok", 9}}), kInvalid,
       "num_experts_per_tok: expected an integer of 1 to 8, got 9"},
      {"TooManyExperts", "glm4_moe", mixture({{"n_routed_experts", 513}}), kInvalid,
       "n_routed_experts: expected an integer of 1 to 512, got 513"},
      {"WidthOfNothing", "glm4_moe", mixture({{"moe_intermediate_size", 0}}), kInvalid,
       "moe_intermediate_size: expected an integer of 1 to 4194304, got 0"},
  };
}

class RefusedConfigTest : public ::testing::TestWithParam<RefusedConfig> {};

TEST_P(RefusedConfigTest, IsRefusedByKey) {
  const RefusedConfig& refused = GetParam();
  const Status status = parse(with(base_config(refused.family), refused.changes)).status();
  EXPECT_EQ(status.code(), refused.code) << status.message();
  EXPECT_THAT(status.message(), HasSubstr(refused.message));
  EXPECT_EQ(status.message().find('\n'), std::string::npos);
}

std::vector<RefusedConfig> refused_gemma4() {
  const json pattern{
      {"layer_types",
       {"full_attention", "sliding_attention", "sliding_attention", "full_attention"}},
      {"hidden_act", nullptr},
      {"rope_theta", nullptr}};
  const auto changed = [&](const json& changes) { return with(pattern, changes); };
  return {
      {"ExpertsWithoutACount", "gemma4_text", changed({{"enable_moe_block", true}}),
       StatusCode::kInvalidArgument, "num_experts: expected an integer of 1 to 512"},
      {"ExpertsWithoutAWidth", "gemma4_text",
       changed({{"enable_moe_block", true}, {"num_experts", 4}, {"top_k_experts", 2}}),
       StatusCode::kInvalidArgument, "moe_intermediate_size: expected an integer"},
      {"ExpertsWithoutAChoice", "gemma4_text",
       changed({{"enable_moe_block", true}, {"num_experts", 4}}), StatusCode::kInvalidArgument,
       "top_k_experts: expected an integer of 1 to 4, but it is missing"},
      {"ExpertsFewerThanChosen", "gemma4_text",
       changed({{"enable_moe_block", true}, {"num_experts", 4}, {"top_k_experts", 5}}),
       StatusCode::kInvalidArgument, "top_k_experts: expected an integer of 1 to 4, got 5"},
      {"ExpertsNeitherOnNorOff", "gemma4_text", changed({{"enable_moe_block", "yes"}}),
       StatusCode::kInvalidArgument, "enable_moe_block: expected true or false"},
      {"NothingToShare", "gemma4_text", changed({{"num_kv_shared_layers", 3}}),
       StatusCode::kInvalidArgument, "num_kv_shared_layers is 3, and layers before those lack"},
      {"SharesMoreThanAll", "gemma4_text", changed({{"num_kv_shared_layers", 5}}),
       StatusCode::kInvalidArgument, "num_kv_shared_layers: expected an integer of 0 to 4"},
      {"AnotherVocabulary", "gemma4_text", changed({{"vocab_size_per_layer_input", 256}}),
       StatusCode::kUnsupported,
       "vocab_size_per_layer_input 256 beside a vocabulary of 512 is not supported"},
      {"SeesWhatFollows", "gemma4_text", changed({{"use_bidirectional_attention", "all"}}),
       StatusCode::kUnsupported, "use_bidirectional_attention \"all\" is not supported"},
      {"HeadsOdd", "gemma4_text", changed({{"global_head_dim", 31}}), StatusCode::kInvalidArgument,
       "expected an even head_dim"},
      {"LayerBeyondTheLast", "gemma4_text",
       changed({{"per_layer_config", {{"4", json::object()}}}}), StatusCode::kInvalidArgument,
       "per_layer_config: expected numbers of 4 layers, got 4"},
      {"LayerThatIsNoNumber", "gemma4_text",
       changed({{"per_layer_config", {{"1x", json::object()}}}}), StatusCode::kInvalidArgument,
       "per_layer_config: expected numbers of 4 layers, got 1x"},
      {"LayerWithAWindowOfItsOwn", "gemma4_text",
       changed({{"per_layer_config", {{"0", {{"sliding_window", 8}}}}}}), StatusCode::kUnsupported,
       "per_layer_config: 0: sliding_window is not supported; head_dim and num_key_value_heads "
       "are"},
      {"LayersOfOneTypeThatDiffer", "gemma4_text",
       changed({{"per_layer_config", {{"1", {{"head_dim", 8}}}}}}), StatusCode::kUnsupported,
       "per_layer_config: layers of one type with heads of several kinds"},
      {"PerLayerConfigElsewhere",
       "llama",
       {{"per_layer_config", {{"1", {{"head_dim", 8}}}}}},
       StatusCode::kUnsupported,
       "per_layer_config"},
      {"PartOfAHead",
       "llama",
       {{"rope_theta", nullptr},
        {"rope_parameters",
         {{"rope_type", "proportional"}, {"rope_theta", 1e4}, {"partial_rotary_factor", 1.5}}}},
       StatusCode::kInvalidArgument,
       "partial_rotary_factor: expected a number of 0 to 1"},
  };
}

INSTANTIATE_TEST_SUITE_P(Experts, RefusedConfigTest, ::testing::ValuesIn(refused_mixtures()),
                         testing::kCaseName);
INSTANTIATE_TEST_SUITE_P(Sizes, RefusedConfigTest, ::testing::ValuesIn(refused_sizes()),
                         testing::kCaseName);
INSTANTIATE_TEST_SUITE_P(Values, RefusedConfigTest, ::testing::ValuesIn(refused_values()),
                         testing::kCaseName);
INSTANTIATE_TEST_SUITE_P(Ropes, RefusedConfigTest, ::testing::ValuesIn(refused_ropes()),
                         testing::kCaseName);
INSTANTIATE_TEST_SUITE_P(LongRopes, RefusedConfigTest, ::testing::ValuesIn(refused_long_ropes()),
                         testing::kCaseName);
INSTANTIATE_TEST_SUITE_P(Gemma4, RefusedConfigTest, ::testing::ValuesIn(refused_gemma4()),
                         testing::kCaseName);
INSTANTIATE_TEST_SUITE_P(Windows, RefusedConfigTest, ::testing::ValuesIn(refused_windows()),
                         testing::kCaseName);

TEST(HfConfigTest, WhatIsNoJsonObjectIsRefused) {
  const std::string brackets(1'000'000, '[');
  for (const std::string& text : {std::string(), std::string("[]"), std::string("{"), brackets}) {
    const Status status = parse_hf_config(text, "").status();
    EXPECT_EQ(status.code(), StatusCode::kDataLoss);
    EXPECT_THAT(status.message(), HasSubstr("config.json: expected "));
  }
  EXPECT_EQ(parse(base_config("llama"), "{").status().code(), StatusCode::kDataLoss);
}

// Any value under any key yields a config or an error, never an exception.
TEST(HfConfigTest, AnyValueUnderAnyKeyIsReadOrRefused) {
  json full = base_config("qwen3");
  full.update({{"head_dim", 16},
               {"attention_bias", false},
               {"use_sliding_window", true},
               {"sliding_window", 8},
               {"max_window_layers", 2},
               {"rope_scaling", {{"type", "linear"}, {"factor", 2.0}}},
               {"layer_types", std::vector<std::string>(4, "full_attention")},
               {"rope_parameters", {{"rope_type", "default"}}},
               {"partial_rotary_factor", 1.0}});
  const json values[] = {nullptr,
                         true,
                         -1,
                         0,
                         7,
                         1e300,
                         "",
                         "text",
                         json::array(),
                         {1, "a", nullptr},
                         json::object(),
                         {{"rope_type", 3}, {"type", json::array()}, {"factor", "x"}}};
  int refused = 0;
  for (const auto& item : full.items()) {
    for (const json& value : values) {
      json config = full;
      config[item.key()] = value;
      if (!parse(config).ok()) ++refused;
      if (!parse(full, json{{item.key(), value}}.dump()).ok()) ++refused;
    }
  }
  EXPECT_GT(refused, 50);
}

}  // namespace
}  // namespace pagoda
