#include "model/families/family_pages.h"

#include <gtest/gtest.h>

#include "core/json.h"
#include "model/hf/hf_config.h"

namespace pagoda {
namespace {

TEST(LlamaTensorNames, AreWhatTheModelsRead) {
  const std::pair<const char*, const char*> pairs[] = {
      {"token_embd.weight", "model.embed_tokens.weight"},
      {"output_norm.weight", "model.norm.weight"},
      {"output.weight", "lm_head.weight"},
      {"blk.0.attn_norm.weight", "model.layers.0.input_layernorm.weight"},
      {"blk.12.attn_q.weight", "model.layers.12.self_attn.q_proj.weight"},
      {"blk.12.attn_q.bias", "model.layers.12.self_attn.q_proj.bias"},
      {"blk.12.attn_k.weight", "model.layers.12.self_attn.k_proj.weight"},
      {"blk.12.attn_v.bias", "model.layers.12.self_attn.v_proj.bias"},
      {"blk.12.attn_output.weight", "model.layers.12.self_attn.o_proj.weight"},
      {"blk.12.attn_q_norm.weight", "model.layers.12.self_attn.q_norm.weight"},
      {"blk.12.attn_k_norm.weight", "model.layers.12.self_attn.k_norm.weight"},
      {"blk.12.ffn_norm.weight", "model.layers.12.post_attention_layernorm.weight"},
      {"blk.3.ffn_gate.weight", "model.layers.3.mlp.gate_proj.weight"},
      {"blk.3.ffn_up.bias", "model.layers.3.mlp.up_proj.bias"},
      {"blk.3.ffn_down.weight", "model.layers.3.mlp.down_proj.weight"},
  };
  for (const auto& [gguf, canonical] : pairs) {
    EXPECT_EQ(kLlamaTensorNames.canonical_of(gguf), canonical);
    EXPECT_EQ(kLlamaTensorNames.gguf_of(canonical), gguf);
  }
}

TEST(LlamaTensorNames, KeepWhatTheyDoNotKnow) {
  for (const char* name :
       {"rope_freqs.weight", "blk.0.ssm_in.weight", "blk.x.attn_q.weight", "blk..attn_q.weight",
        "blk.0", "blk.", "", ".", "output", "model.layers.0.mlp.up_proj.weight"}) {
    EXPECT_EQ(kLlamaTensorNames.canonical_of(name), name);
  }
  for (const char* name :
       {"model.layers.0.self_attn.rotary_emb.inv_freq", "model.layers.x.mlp.up_proj.weight",
        "blk.0.ffn_up.weight", "model.layers.", "lm_head", ""}) {
    EXPECT_EQ(kLlamaTensorNames.gguf_of(name), "");
  }
}

TEST(Gemma4TensorNames, ScalesAreTensorsOfOtherModules) {
  const std::pair<const char*, const char*> pairs[] = {
      {"blk.7.ffn_gate_inp.weight", "model.layers.7.router.proj.weight"},
      {"blk.7.ffn_gate_inp.scale", "model.layers.7.router.scale"},
      {"blk.7.ffn_down_exps.weight", "model.layers.7.experts.down_proj.weight"},
      {"blk.7.ffn_down_exps.scale", "model.layers.7.router.per_expert_scale"},
      {"blk.7.post_ffw_norm_1.weight", "model.layers.7.post_feedforward_layernorm_1.weight"},
  };
  for (const auto& [gguf, canonical] : pairs) {
    EXPECT_EQ(kGemma4.gguf_tensor_names->canonical_of(gguf), canonical);
    EXPECT_EQ(kGemma4.gguf_tensor_names->gguf_of(canonical), gguf);
  }
  EXPECT_EQ(kGemma4.gguf_tensor_names->canonical_of("blk.7.attn_norm"), "blk.7.attn_norm");
  EXPECT_EQ(kGemma4.gguf_tensor_names->gguf_of("model.layers.7.layer_scalar"), "");
}

TEST(FamilyTest, EveryOneIsFoundByItsNames) {
  for (const Family* family : families()) {
    EXPECT_EQ(find_family(family->model_type), family);
    EXPECT_TRUE(!family->base_class.empty() || family->causal_class.ends_with("ForCausalLM"));
    const GgufTraits traits = {.has_window = family->windows != WindowRule::kNone,
                               .has_experts = family->may_have_experts()};
    // GGUF calls both granitemoe, which reads a shared expert where there is one.
    const Family* const of_gguf = family == &kGraniteMoeShared ? &kGraniteMoe : family;
    EXPECT_EQ(find_gguf_family(family->gguf_architecture, traits), of_gguf) << family->model_type;
  }
  EXPECT_EQ(find_family("gpt2"), nullptr);
  EXPECT_EQ(find_gguf_family("mistral", {}), nullptr);
  EXPECT_EQ(find_gguf_family("qwen2", {.has_window = true}), &kQwen2);
  EXPECT_EQ(find_gguf_family("llama", {.has_experts = true}), &kMixtral);
}

TEST(FamilyTest, MessagesNameEachOnce) {
  EXPECT_EQ(
      supported_model_types(),
      "llama, mistral, qwen2, qwen3, gemma2, gemma3_text, gemma4_text, glm4, granite, ministral3, "
      "olmo2, olmo3, phi3, qwen3_vl_text, smollm3, mixtral, olmoe, qwen2_moe, qwen3_moe, "
      "qwen3_vl_moe_text, "
      "granitemoe, granitemoeshared, gpt_oss, laguna, glm4_moe, ernie4_5_moe");
  EXPECT_EQ(supported_gguf_architectures(),
            "llama, qwen2, qwen3, gemma2, gemma3, gemma4, glm4, granite, mistral3, olmo2, phi3, "
            "qwen3vl, smollm3, olmoe, qwen2moe, qwen3moe, qwen3vlmoe, granitemoe, gpt-oss, laguna, "
            "glm4moe, "
            "ernie4_5-moe");
}

// The defaults of a family are a JSON object. All its keys are read by this family or by all.
TEST(FamilyTest, DefaultsAreJsonObjects) {
  for (const Family* family : families()) {
    const auto defaults = parse_json(family->defaults);
    EXPECT_TRUE(defaults.is_object()) << family->model_type;
    if (defaults.contains("hidden_size")) {
      nlohmann::json config = defaults;
      config["model_type"] = family->model_type;
      EXPECT_TRUE(parse_hf_config(json_text(config), "").ok()) << family->model_type;
    }
  }
}

}  // namespace
}  // namespace pagoda
