#include "model/hf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "model/rope_frequencies.h"
#include "tests/support/layer_windows.h"

namespace pagoda {
namespace {

using nlohmann::json;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

json base_config(const char* model_type) {
  return json{{"model_type", model_type}, {"vocab_size", 512},
              {"hidden_size", 64},        {"intermediate_size", 112},
              {"num_hidden_layers", 4},   {"num_attention_heads", 4},
              {"num_key_value_heads", 2}, {"max_position_embeddings", 2048},
              {"rms_norm_eps", 1e-5},     {"hidden_act", "silu"},
              {"eos_token_id", 1},        {"bos_token_id", 0},
              {"rope_theta", 10000.0},    {"tie_word_embeddings", true}};
}

Result<ModelConfig> parse(const json& config, const std::string& generation = "") {
  return parse_hf_config(config.dump(), generation);
}

json with(json config, const json& changes) {
  config.update(changes);
  return config;
}

json without(json config, const char* key) {
  config.erase(key);
  return config;
}

TEST(HfConfigTest, ReadsLlama) {
  const auto config = parse(base_config("llama"));
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->architecture, "llama");
  EXPECT_EQ(config->vocab_size, 512);
  EXPECT_EQ(config->hidden_size, 64);
  EXPECT_EQ(config->intermediate_size, 112);
  EXPECT_EQ(config->num_layers(), 4);
  EXPECT_EQ(config->layers.front().num_heads, 4);
  EXPECT_EQ(config->layers.front().num_kv_heads, 2);
  EXPECT_EQ(config->layers.front().head_dim, 16);
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
  EXPECT_EQ(read->layers.front().num_kv_heads, 4);
  EXPECT_EQ(read->rms_norm_eps, 1e-6f);
  EXPECT_FALSE(read->tie_word_embeddings);
  EXPECT_EQ(read->rope_tables.front().inv_freq, rope_inverse_frequencies(16, 10000, {}));
  EXPECT_TRUE(read->eos_token_ids.empty());
  EXPECT_FALSE(read->bos_token_id.has_value());
}

TEST(HfConfigTest, HeadDimMayStandAlone) {
  EXPECT_EQ(parse(with(base_config("mistral"), {{"head_dim", 24}}))->layers.front().head_dim, 24);
  EXPECT_EQ(parse(with(base_config("llama"), {{"head_dim", nullptr}}))->layers.front().head_dim,
            16);
  EXPECT_EQ(parse(base_config("qwen3"))->layers.front().head_dim, 128);
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

struct Refused {
  const char* name;
  const char* family;
  json changes;
  StatusCode code;
  const char* message;
};

void PrintTo(const Refused& refused, std::ostream* out) {
  *out << refused.name;
}

std::vector<Refused> refused_sizes() {
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

std::vector<Refused> refused_values() {
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
       "hidden_act gelu is not supported; silu is"},
      {"Quantised",
       "llama",
       {{"quantization_config", {{"quant_method", "gptq"}}}},
       StatusCode::kUnsupported,
       "config.json: quantization_config: quant_method \"gptq\" is not supported"},
      {"QuantisedInAnotherMode",
       "llama",
       {{"quantization", {{"group_size", 32}, {"bits", 4}, {"mode", "mxfp4"}}}},
       StatusCode::kUnsupported,
       "config.json: quantization: mode \"mxfp4\" is not supported"},
      {"PartialRotary",
       "llama",
       {{"partial_rotary_factor", 0.5}},
       StatusCode::kUnsupported,
       "partial_rotary_factor 0.5"},
      {"UnknownArchitecture", "gpt_oss", json::object(), StatusCode::kUnsupported,
       "architecture gpt_oss is not supported; these are: llama, mistral, qwen2, qwen3"},
  };
}

std::vector<Refused> refused_ropes() {
  constexpr auto kInvalid = StatusCode::kInvalidArgument;
  return {
      {"Yarn",
       "qwen2",
       {{"rope_scaling", {{"type", "yarn"}, {"factor", 4.0}}}},
       StatusCode::kUnsupported,
       "rope_scaling: rope type yarn is not supported"},
      {"RopeParametersByLayerType",
       "qwen3",
       {{"rope_parameters", {{"full_attention", {{"rope_type", "default"}}}}}},
       StatusCode::kUnsupported,
       "rope_parameters that differ by layer type are not supported"},
      {"LongRope",
       "llama",
       {{"rope_scaling", {{"rope_type", "longrope"}}}},
       StatusCode::kUnsupported,
       "rope type longrope is not supported"},
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

std::vector<Refused> refused_windows() {
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

class RefusedConfigTest : public ::testing::TestWithParam<Refused> {};

TEST_P(RefusedConfigTest, IsRefusedByKey) {
  const Refused& refused = GetParam();
  const Status status = parse(with(base_config(refused.family), refused.changes)).status();
  EXPECT_EQ(status.code(), refused.code) << status.message();
  EXPECT_THAT(status.message(), HasSubstr(refused.message));
  EXPECT_EQ(status.message().find('\n'), std::string::npos);
}

constexpr auto kCaseName = [](const auto& info) { return std::string(info.param.name); };
INSTANTIATE_TEST_SUITE_P(Sizes, RefusedConfigTest, ::testing::ValuesIn(refused_sizes()), kCaseName);
INSTANTIATE_TEST_SUITE_P(Values, RefusedConfigTest, ::testing::ValuesIn(refused_values()),
                         kCaseName);
INSTANTIATE_TEST_SUITE_P(Ropes, RefusedConfigTest, ::testing::ValuesIn(refused_ropes()), kCaseName);
INSTANTIATE_TEST_SUITE_P(Windows, RefusedConfigTest, ::testing::ValuesIn(refused_windows()),
                         kCaseName);

TEST(HfConfigTest, WhatIsNoJsonObjectIsRefused) {
  const std::string brackets(1'000'000, '[');
  for (const std::string& text : {std::string(), std::string("[]"), std::string("{"), brackets}) {
    const Status status = parse_hf_config(text, "").status();
    EXPECT_EQ(status.code(), StatusCode::kDataLoss);
    EXPECT_THAT(status.message(), HasSubstr("config.json: expected a JSON object"));
  }
  EXPECT_EQ(parse(base_config("llama"), "{").status().code(), StatusCode::kDataLoss);
}

// Whatever a key holds, the answer is a config or a message, never an exception.
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
