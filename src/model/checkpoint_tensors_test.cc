#include "model/checkpoint_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include <string>
#include <vector>

#include "model/family.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/source_path.h"
#include "tests/support/temporary_folder.h"

namespace pagoda {
namespace {

using ::testing::HasSubstr;

Status check(const Checkpoint& checkpoint) {
  const auto config = read_model_config(checkpoint);
  if (!config.ok()) return config.status();
  const auto named = checkpoint.renamed(*find_family(config->architecture)->gguf_tensor_names);
  if (!named.ok()) return named.status();
  return check_all_tensors_are_read(*named, *config);
}

// Checks the tensor names of a golden checkpoint, and one more name. The values are dummies.
Status check_with(const std::string& model, const std::string& extra) {
  const std::string source = testing::source_path("tests/golden/data/") + model;
  const testing::TemporaryFolder folder;
  testing::SafetensorsWriter writer;
  const std::vector<float> values{1, 2};
  for (const std::string& name : Checkpoint::open(source)->names()) {
    writer.add(name, {2}, WeightFormat::kF32, values);
  }
  if (!extra.empty()) writer.add(extra, {2}, WeightFormat::kF32, values);
  writer.write(folder / "model.safetensors");
  std::filesystem::copy_file(source + "/config.json", folder / "config.json");
  return check(*Checkpoint::open(folder.path()));
}

TEST(CheckpointTensorsTest, EveryFamilysOwnTensorsAreRead) {
  for (const char* model : {"tiny-llama",
                            "tiny-llama31",
                            "tiny-mistral",
                            "tiny-qwen2",
                            "tiny-qwen3",
                            "tiny-gemma2",
                            "tiny-gemma3",
                            "tiny-gemma3-vl",
                            "tiny-gemma4",
                            "tiny-gemma4-vl",
                            "tiny-glm4",
                            "tiny-granite",
                            "tiny-ministral3",
                            "tiny-mistral3",
                            "tiny-olmo2",
                            "tiny-olmo3",
                            "tiny-phi3",
                            "tiny-qwen3-vl",
                            "tiny-smollm3",
                            "tiny-mixtral",
                            "tiny-qwen2-moe",
                            "tiny-qwen3-moe",
                            "tiny-olmoe",
                            "tiny-granitemoe",
                            "tiny-granitemoeshared",
                            "tiny-glm4-moe",
                            "tiny-ernie4-5-moe",
                            "tiny-gpt-oss",
                            "tiny-gpt-oss-mxfp4",
                            "tiny-gemma4-moe",
                            "tiny-laguna",
                            "tiny-qwen3-vl-moe"}) {
    const Status status = check_with(model, "");
    EXPECT_TRUE(status.ok()) << model << ": " << status.message();
  }
}

TEST(CheckpointTensorsTest, OneThatNothingReadsIsRefusedByName) {
  const std::pair<const char*, const char*> extras[] = {
      {"tiny-llama", "model.layers.0.self_attn.sinks"},
      {"tiny-llama", "model.layers.0.self_attn.q_norm.weight"},
      {"tiny-llama", "model.layers.0.post_feedforward_layernorm.weight"},
      {"tiny-llama", "model.layers.0.self_attn.q_proj.bias"},
      {"tiny-llama", "model.layers.3.input_layernorm.weight"},
      {"tiny-llama", "model.layers.0.mlp.experts.0.w1.weight"},
      {"tiny-llama", "rope_freqs.weight"},
      {"tiny-mistral", "model.layers.1.self_attn.o_proj.bias"},
      {"tiny-qwen2", "model.layers.0.self_attn.o_proj.bias"},
      {"tiny-qwen2", "score.weight"},
      {"tiny-qwen3", "lm_head.bias"},
      {"tiny-qwen3", "model.layers.0.self_attn.q_norm.bias"},
      {"tiny-phi3", "model.layers.0.self_attn.q_proj.weight"},
      {"tiny-glm4", "model.layers.1.mlp.up_proj.weight"},
      {"tiny-gemma2", "model.layers.0.self_attn.k_norm.weight"},
      {"tiny-olmo2", "model.layers.0.input_layernorm.weight"},
      {"tiny-gemma3", "model.embed_tokens_per_layer.weight"},
      {"tiny-gemma4", "model.layers.0.router.scale"},
      {"tiny-gemma4-vl", "model.layers.0.self_attn.v_proj.weight"},
      {"tiny-qwen3-moe", "model.layers.0.mlp.experts.6.up_proj.weight"},
      {"tiny-qwen3-moe", "model.layers.0.mlp.experts.06.up_proj.weight"},
      {"tiny-qwen3-moe", "model.layers.0.mlp.gate.bias"},
      {"tiny-qwen3-moe", "model.layers.0.mlp.experts.gate_up_proj_bias"},
      {"tiny-qwen3-moe", "model.layers.0.mlp.experts.0.up_proj.bias"},
      {"tiny-gpt-oss", "model.layers.0.mlp.gate.weight"},
      {"tiny-qwen3-moe", "model.layers.0.mlp.shared_expert.up_proj.weight"},
      {"tiny-qwen3-moe", "model.layers.0.mlp.gate_proj.weight"},
      {"tiny-granitemoe", "model.layers.0.block_sparse_moe.experts.0.gate_proj.weight"},
      {"tiny-glm4-moe", "model.layers.0.mlp.gate.e_score_correction_bias"},
      {"tiny-gemma4-moe", "model.layers.0.router.proj.bias"},
      {"tiny-gemma4-moe", "model.layers.0.router.norm.weight"},
      {"tiny-gemma4-moe", "model.layers.0.experts.switch_glu.gate_proj.weight"},
  };
  for (const auto& [model, extra] : extras) {
    const Status status = check_with(model, extra);
    EXPECT_EQ(status.code(), StatusCode::kUnsupported) << extra;
    EXPECT_THAT(status.message(), HasSubstr(std::string("tensor ") + extra + " is not supported"));
  }
}

// transformers ignores these tensors as well.
TEST(CheckpointTensorsTest, KeysOfALayerThatReadsAnotherOnesCacheAreHarmless) {
  for (const char* extra :
       {"model.layers.4.self_attn.k_proj.weight", "model.layers.5.self_attn.v_proj.weight",
        "model.layers.5.self_attn.k_norm.weight"}) {
    EXPECT_TRUE(check_with("tiny-gemma4", extra).ok()) << extra;
  }
}

TEST(CheckpointTensorsTest, TablesThatFollowFromTheConfigAreHarmless) {
  for (const char* extra :
       {"model.layers.0.self_attn.rotary_emb.inv_freq", "model.rotary_emb.inv_freq"}) {
    EXPECT_TRUE(check_with("tiny-llama", extra).ok()) << extra;
  }
}

Status check_gguf(const std::string& extra, const Shape& shape) {
  const testing::TemporaryFolder folder;
  const auto values = [](const Shape& of) { return std::vector<float>(of.num_elements(), 1.0f); };
  testing::GgufWriter writer;
  writer.set("general.architecture", "llama").set("llama.block_count", 1u);
  writer.set("llama.context_length", 64u).set("llama.embedding_length", 16u);
  writer.set("llama.feed_forward_length", 16u).set("llama.attention.head_count", 1u);
  writer.set("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  writer.add_tensor("token_embd.weight", {8, 16}, WeightFormat::kF32, values({8, 16}));
  writer.add_tensor(extra, shape, WeightFormat::kF32, values(shape));
  writer.write(folder / "m.gguf");
  return check(*Checkpoint::open(folder / "m.gguf"));
}

TEST(CheckpointTensorsTest, AGgufVariantOfLlamaIsRefusedByItsTensor) {
  EXPECT_TRUE(check_gguf("rope_freqs.weight", {8}).ok());
  EXPECT_TRUE(check_gguf("output.weight", {8, 16}).ok());
  for (const char* extra : {"blk.0.attn_sinks.weight", "blk.0.post_ffw_norm.weight", "cls.weight",
                            "rope_factors_long.weight", "blk.0.attn_scale.weight"}) {
    const Status status = check_gguf(extra, {8});
    EXPECT_EQ(status.code(), StatusCode::kUnsupported) << extra;
    EXPECT_THAT(status.message(), HasSubstr(extra));
  }
  // A mixture's router, in a file whose keys do not say that there are experts.
  EXPECT_THAT(check_gguf("blk.0.ffn_gate_inp.weight", {8}).message(),
              HasSubstr("model.layers.0.mlp.gate.weight"));
  // A reranker's head, in a file whose keys do not say that it is a reranker.
  EXPECT_THAT(check_gguf("cls.output.weight", {8}).message(), HasSubstr("score.weight"));
}

}  // namespace
}  // namespace pagoda
