// Keys and classes of config.json: read, harmless, or refused by name.
#include "model/hf/hf_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/json.h"
#include "model/hf/hf_config.h"
#include "model/rope_frequencies.h"
#include "tests/support/layer_windows.h"

namespace pagoda {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<ModelConfig> parse_family(const std::string& model_type, const json& changes,
                                 const std::string& generation = "") {
  json config{{"model_type", model_type},
              {"vocab_size", 512},
              {"hidden_size", 64},
              {"intermediate_size", 112},
              {"num_hidden_layers", 4},
              {"num_attention_heads", 4},
              {"rms_norm_eps", 1e-5},
              {"hidden_act", "silu"},
              {"num_key_value_heads", 2},
              {"eos_token_id", 1},
              {"max_position_embeddings", 2048}};
  config.update(changes);
  return parse_hf_config(json_text(config), generation);
}

std::string refusal(const std::string& model_type, const json& changes) {
  const Status status = parse_family(model_type, changes).status();
  return status.code() == StatusCode::kUnsupported ? std::string(status.message()) : "";
}

TEST(HfKeysTest, AClassifierAnEncoderAndARewardModelAreNoChatModels) {
  EXPECT_THAT(refusal("qwen3", {{"architectures", {"Qwen3ForTokenClassification"}}}),
              HasSubstr("architectures: \"Qwen3ForTokenClassification\" is not supported; "
                        "Qwen3ForCausalLM is"));
  EXPECT_FALSE(parse_family("mistral", {{"architectures", {"MistralModel"}}})->has_head);
  const auto scorer =
      parse_family("qwen3", {{"architectures", {"Qwen3ForSequenceClassification"}}});
  EXPECT_TRUE(scorer.ok() && scorer->has_score_head && !scorer->has_head);
  for (const auto& [family, name] :
       {std::pair("gemma3_text", "Gemma3TextModel"), std::pair("gemma4_text", "Gemma4TextModel"),
        std::pair("qwen3_vl_text", "Qwen3VLTextModel")}) {
    const auto bare = parse_family(
        family,
        {{"architectures", {name}}, {"hidden_act", nullptr}, {"tie_word_embeddings", false}});
    EXPECT_TRUE(bare.ok() && !bare->has_head) << family << bare.status().message();
  }
  EXPECT_NE(refusal("mistral", {{"architectures", {"LlamaModel"}}}), "");
  EXPECT_NE(refusal("qwen2", {{"architectures", {"Qwen2ForRewardModel"}}}), "");
  EXPECT_NE(refusal("llama", {{"architectures", {"LlamaForCausalLM", "LlamaModel"}}}), "");
  EXPECT_TRUE(parse_family("llama", {{"architectures", {"LlamaForCausalLM"}}}).ok());
  EXPECT_TRUE(parse_family("llama", {{"architectures", {"LLaMAForCausalLM"}}}).ok());
  EXPECT_TRUE(parse_family("llama", {{"architectures", nullptr}}).ok());
  EXPECT_THAT(parse_family("llama", {{"architectures", "LlamaForCausalLM"}}).status().message(),
              HasSubstr("architectures: expected a list of LlamaForCausalLM"));
}

TEST(HfKeysTest, CodeOfTheCheckpointsOwnIsNotRun) {
  EXPECT_THAT(
      refusal("qwen2", {{"auto_map", {{"AutoModelForCausalLM", "modeling_x.XForCausalLM"}}}}),
      HasSubstr("auto_map: AutoModelForCausalLM is code of the checkpoint's own"));
  EXPECT_TRUE(
      parse_family("qwen2", {{"auto_map", {{"AutoTokenizer", {"tokenization_x.X", nullptr}}}}})
          .ok());
}

TEST(HfKeysTest, VariantsOfTheArithmeticAreRefusedByName) {
  const std::pair<const char*, json> variants[] = {
      {"is_causal", false},
      {"use_bidirectional_attention", true},
      {"attn_logit_softcapping", 50.0},
      {"logit_scale", 0.0625},
      {"num_local_experts", 8},
      {"use_qk_norm", true},
      {"is_encoder_decoder", true},
      {"query_pre_attn_scalar", 256},
      {"pruned_heads", {{"0", {1}}}},
      {"residual_multiplier", 0.22},
  };
  for (const auto& [key, value] : variants) {
    EXPECT_THAT(refusal("llama", {{key, value}}),
                HasSubstr(std::string("config.json: ") + key + " "))
        << key;
  }
  EXPECT_TRUE(
      parse_family("llama", {{"is_causal", true}, {"logit_scale", 1.0}, {"clip_qkv", nullptr}})
          .ok());
}

TEST(HfKeysTest, AKeyThatNobodyKnowsIsRefusedByName) {
  EXPECT_THAT(refusal("llama", {{"attention_sinks", 4}}),
              HasSubstr("config.json: key attention_sinks is not known and may change what the "
                        "model computes; take it out of the file if it does not"));
  EXPECT_TRUE(parse_family("llama", {{"attention_sinks", nullptr}}).ok());
  EXPECT_THAT(refusal("llama", {{"rope_scaling",
                                 {{"rope_type", "default"}, {"mrope_section", {16, 24, 24}}}}}),
              HasSubstr("rope_scaling: key mrope_section is not known"));
  EXPECT_THAT(
      refusal("llama", {{"rope_scaling",
                         {{"rope_type", "linear"}, {"factor", 2}, {"attention_factor", 1.2}}}}),
      HasSubstr("rope_scaling: attention_factor beside rope type linear is not supported"));
  EXPECT_THAT(refusal("llama", {{"rope_scaling", {{"rope_type", "default"}, {"factor", 2}}}}),
              HasSubstr("rope_scaling: factor beside rope type default is not supported"));
}

TEST(HfKeysTest, KeysThatFineTunesCarryAreHarmless) {
  const auto config = parse_family("llama", {{"_name_or_path", "a/b"},
                                             {"torch_dtype", "bfloat16"},
                                             {"dtype", "float32"},
                                             {"transformers_version", "5.0.0"},
                                             {"use_cache", false},
                                             {"pretraining_tp", 2},
                                             {"attention_dropout", 0.1},
                                             {"initializer_range", 0.02},
                                             {"pad_token_id", 0},
                                             {"unsloth_version", "2026.1"},
                                             {"unsloth_fixed", true},
                                             {"num_labels", 2},
                                             {"id2label", {{"0", "LABEL_0"}}},
                                             {"problem_type", nullptr},
                                             {"_attn_implementation_autoset", true},
                                             {"temperature", 0.6},
                                             {"max_length", 4096},
                                             {"transformers.js_config", {{"dtype", "q4"}}},
                                             {"is_llama_config", true},
                                             {"rope_interleaved", false},
                                             {"use_mrope", false},
                                             {"tokenizer_class", "X"}});
  EXPECT_TRUE(config.ok()) << config.status().message();
}

TEST(HfKeysTest, RopeScalingWinsOverRopeParametersBesideIt) {
  const json parameters{{"rope_type", "default"}, {"rope_theta", 5e5}};
  const json scaling{{"rope_type", "linear"}, {"factor", 4.0}};
  // rope_scaling's theta is its own or the top-level one, never that of rope_parameters.
  const RopeScaling linear{.type = RopeScalingType::kLinear, .factor = 4};
  EXPECT_EQ(parse_family("llama", {{"rope_parameters", parameters}, {"rope_scaling", scaling}})
                ->rope_tables.front()
                .inv_freq,
            rope_inverse_frequencies(16, 1e4, linear));
  EXPECT_EQ(parse_family(
                "llama",
                {{"rope_parameters", parameters}, {"rope_theta", 1e6}, {"rope_scaling", scaling}})
                ->rope_tables.front()
                .inv_freq,
            rope_inverse_frequencies(16, 1e6, linear));
  EXPECT_THAT(refusal("qwen2", {{"rope_parameters", parameters},
                                {"rope_scaling", {{"type", "dynamic"}, {"factor", 4.0}}}}),
              HasSubstr("rope_scaling: rope type dynamic is not supported"));
  for (const json& nothing : {json(), json::object()}) {
    EXPECT_EQ(parse_family("llama", {{"rope_parameters", parameters}, {"rope_scaling", nothing}})
                  ->rope_tables.front()
                  .theta,
              5e5);
  }
}

TEST(HfKeysTest, Llama3ScalingWithoutItsOriginalPositionsTakesTheModels) {
  const auto config = parse_family("llama", {{"rope_scaling",
                                              {{"rope_type", "llama3"},
                                               {"factor", 8},
                                               {"low_freq_factor", 1},
                                               {"high_freq_factor", 4}}}});
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->rope_tables.front().inv_freq,
            rope_inverse_frequencies(16, 1e4,
                                     {.type = RopeScalingType::kLlama3,
                                      .factor = 8,
                                      .low_freq_factor = 1,
                                      .high_freq_factor = 4,
                                      .original_positions = 2048}));
}

TEST(HfKeysTest, SwishIsSiluAndWholeNumbersMayHaveAPoint) {
  const auto config = parse_family("llama", {{"hidden_act", "swish"},
                                             {"max_position_embeddings", 2048.0},
                                             {"num_hidden_layers", 3.0},
                                             {"eos_token_id", {1.0, 2}}});
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->max_position_embeddings, 2048);
  EXPECT_EQ(config->num_layers(), 3);
  EXPECT_THAT(config->eos_token_ids, ElementsAre(1, 2));
}

TEST(HfKeysTest, MistralsLayerTypesWindowTheNamedLayersOnly) {
  const json types{"full_attention", "sliding_attention", "full_attention", "sliding_attention"};
  EXPECT_THAT(testing::windows_of(
                  *parse_family("mistral", {{"layer_types", types}, {"sliding_window", 8}})),
              ElementsAre(0, 8, 0, 8));
  EXPECT_THAT(testing::windows_of(*parse_family("mistral", {{"layer_types", types}})),
              ElementsAre(0, 4096, 0, 4096));
  EXPECT_FALSE(parse_family("mistral", {{"layer_types", types}, {"sliding_window", nullptr}}).ok());
  EXPECT_FALSE(parse_family("llama", {{"layer_types", types}, {"sliding_window", 8}}).ok());
}

TEST(HfKeysTest, SpecialIdsBeyondTheVocabularyAreDropped) {
  const auto config = parse_family("llama", {{"eos_token_id", {1, 512, -1}}, {"bos_token_id", -1}});
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_THAT(config->eos_token_ids, ElementsAre(1));
  EXPECT_FALSE(config->bos_token_id.has_value());
  // The vocabulary has none of the generation config's ids, so the config's own ids stay.
  EXPECT_THAT(parse_family("llama", json::object(), R"({"eos_token_id": [32000, 4294967295]})")
                  ->eos_token_ids,
              ElementsAre(1));
}

}  // namespace
}  // namespace pagoda
