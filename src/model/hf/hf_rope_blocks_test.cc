// Several spellings of a rotation in one config: transformers' choice is followed, or it is
// refused.
#include "model/hf/hf_rope_blocks.h"

#include <utility>

#include "model/hf/hf_config_fixture.h"
#include "tests/support/log_capture.h"

namespace pagoda {
namespace {

constexpr int kHeadDim = 16;

json changed(const char* family, const json& changes) {
  return with(without(base_config(family), "rope_theta"), changes);
}

// Returns the frequencies of full-attention layers, and of those with a window.
std::pair<std::vector<float>, std::vector<float>> frequencies_of(const char* family,
                                                                 const json& changes) {
  const json types{"full_attention", "sliding_attention", "sliding_attention", "full_attention"};
  const json shape{{"layer_types", types}, {"sliding_window", 8}, {"head_dim", kHeadDim}};
  const Result<ModelConfig> config = parse(with(changed(family, shape), changes));
  EXPECT_TRUE(config.ok()) << config.status().message();
  if (!config.ok()) return {};
  const auto of_layer = [&](int layer) {
    return config->rope_tables[config->layers[layer].attention().rope_table].inv_freq;
  };
  return {of_layer(0), of_layer(1)};
}

std::vector<float> plain(double theta) {
  return rope_inverse_frequencies(kHeadDim, theta, {});
}

std::vector<float> linear(double theta, float factor) {
  return rope_inverse_frequencies(kHeadDim, theta,
                                  {.type = RopeScalingType::kLinear, .factor = factor});
}

Status refusal_of(const char* family, const json& changes) {
  return parse(changed(family, changes)).status();
}

TEST(HfRopeBlocks, OriginalPositionsAtTheTopWinOverTheBlocks) {
  const json llama3{
      {"rope_type", "llama3"}, {"factor", 8}, {"low_freq_factor", 1}, {"high_freq_factor", 4}};
  const json yarn{{"rope_type", "yarn"}, {"factor", 4}};
  const json longrope{{"rope_type", "longrope"},
                      {"long_factor", std::vector<float>(8, 2)},
                      {"short_factor", std::vector<float>(8, 1)}};
  for (const json& block : {llama3, yarn, longrope}) {
    const json own = with(block, {{"original_max_position_embeddings", 256}});
    const json other = with(block, {{"original_max_position_embeddings", 1024}});
    const auto expected = parse(changed("llama", {{"rope_parameters", own}}));
    ASSERT_TRUE(expected.ok()) << expected.status().message();
    for (const json& written : {other, block}) {
      const auto config = parse(changed(
          "llama", {{"rope_parameters", written}, {"original_max_position_embeddings", 256}}));
      ASSERT_TRUE(config.ok()) << config.status().message();
      EXPECT_TRUE(*config == *expected) << written;
    }
    EXPECT_FALSE(*parse(changed("llama", {{"rope_parameters", other}})) == *expected);
  }
}

TEST(HfRopeBlocks, RopeScalingIsLaidOverTheBlockOfLayersThatSeeAll) {
  const json parameters{{"full_attention", {{"rope_type", "default"}, {"rope_theta", 7e4}}},
                        {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 3e3}}}};
  for (const char* family : {"gemma3_text", "olmo3"}) {
    const testing::LogCapture log;
    const json scaling{{"rope_type", "linear"}, {"factor", 4}};
    const auto [full, windows] =
        frequencies_of(family, {{"rope_parameters", parameters}, {"rope_scaling", scaling}});
    EXPECT_EQ(full, linear(7e4, 4));
    EXPECT_EQ(windows, plain(3e3));
    EXPECT_THAT(log.text(), HasSubstr("rope_parameters: full_attention: rope_type is ignored: "
                                      "rope_scaling stands beside it"));
    const json dynamic{{"rope_type", "dynamic"}, {"factor", 4}};
    EXPECT_THAT(
        refusal_of(family, {{"rope_parameters", parameters}, {"rope_scaling", dynamic}}).message(),
        HasSubstr("rope_scaling: rope type dynamic is not supported"));
  }
}

TEST(HfRopeBlocks, WhatStandsBesideTheBlocksOfLayerTypesIsIdle) {
  const json flat{{"rope_type", "linear"}, {"factor", 4}, {"rope_theta", 7e4}};
  for (const auto& [family, of_full, of_windows] :
       {std::tuple{"gemma3_text", 1e6, 1e4}, std::tuple{"olmo3", 5e5, 5e5}}) {
    const testing::LogCapture log;
    const auto [full, windows] = frequencies_of(family, {{"rope_parameters", flat}});
    EXPECT_EQ(full, plain(of_full)) << family;
    EXPECT_EQ(windows, plain(of_windows)) << family;
    EXPECT_THAT(log.text(), HasSubstr("rope_parameters: rope_theta is ignored: layers rotate as "
                                      "full_attention and sliding_attention say"));
  }
}

TEST(HfRopeBlocks, WindowsWithoutAThetaRotateByTheClasssOwn) {
  const json parameters{{"full_attention", {{"rope_type", "default"}, {"rope_theta", 7e4}}},
                        {"sliding_attention", {{"rope_type", "default"}}}};
  const json changes{{"rope_parameters", parameters}, {"rope_theta", 3e3}};
  EXPECT_EQ(frequencies_of("olmo3", changes), std::pair(plain(7e4), plain(5e5)));
  EXPECT_EQ(frequencies_of("gemma3_text", changes), std::pair(plain(7e4), plain(1e4)));
  EXPECT_EQ(frequencies_of("gemma3_text", with(changes, {{"rope_local_base_freq", 2e3}})),
            std::pair(plain(7e4), plain(2e3)));
}

TEST(HfRopeBlocks, SpellingsOfWhichNoneIsKnownToWinAreRefused) {
  const json flat{{"rope_type", "default"}};
  const json linear_scaling{{"rope_type", "linear"}, {"factor", 4}};
  const json untruncated{{"rope_type", "yarn"}, {"factor", 4}, {"truncate", false}};
  const std::tuple<const char*, json, const char*> refused[] = {
      {"olmo3",
       {{"rope_parameters", flat}, {"rope_scaling", linear_scaling}},
       "rope_scaling beside a rope_parameters without full_attention is not supported"},
      {"olmo3",
       {{"rope_scaling", {{"type", "linear"}, {"factor", 4}}}},
       "rope_scaling: type without rope_type is not supported for layers of one type"},
      {"gemma3_text",
       {{"rope_scaling", untruncated}},
       "rope_scaling: truncate false is not supported for layers of one type"},
      {"gemma4_text", {{"rope_scaling", linear_scaling}}, "rope_scaling is not supported"},
      {"gemma4_text", {{"rope_parameters", flat}}, "full_attention: expected an object"},
      {"gemma3_text",
       {{"rope_parameters", {{"full_attention", untruncated}}}},
       "full_attention: truncate false is not supported for layers of one type"},
      {"gemma3_text",
       {{"rope_parameters", {{"full_attention", flat}, {"truncate", false}}}},
       "rope_parameters: truncate beside blocks of layer types is not supported"},
      {"gemma3_text",
       {{"rope_parameters", {{"full_attention", flat}, {"chunked_attention", flat}}}},
       "rope_parameters: key chunked_attention is not known"},
      {"llama",
       {{"rope_scaling",
         {{"rope_type", "yarn"}, {"factor", 4}, {"long_factor", std::vector<float>(8, 2)}}}},
       "rope_scaling: long_factor beside rope type yarn is not supported"},
  };
  for (const auto& [family, changes, message] : refused) {
    json quiet = changes;
    quiet["hidden_act"] = nullptr;
    EXPECT_THAT(refusal_of(family, quiet).message(), HasSubstr(message));
  }
}

}  // namespace
}  // namespace pagoda
