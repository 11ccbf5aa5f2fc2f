// A Hugging Face folder of a random qwen3. Five of its seven layers have a sliding window, so that
// there are several cache groups; one group has a lane without a layer.
#pragma once

#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "tests/support/safetensors_writer.h"
#include "tests/support/source_path.h"
#include "tests/support/temporary_folder.h"

namespace pagoda::testing {

inline constexpr int kWindowOfCheckpoint = 24;  // positions

// Writes the checkpoint into an empty folder; the tokenizer is tiny-qwen3's, 512 tokens.
inline void make_windowed_checkpoint(const TemporaryFolder& folder) {
  namespace fs = std::filesystem;
  const fs::path tiny = source_path("tests/golden/data/tiny-qwen3");
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "chat_template.jinja"})
    fs::copy_file(tiny / name, folder / name);
  std::ofstream(folder / "config.json") << R"({"model_type": "qwen3", "vocab_size": 512,
    "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 7, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 32, "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": true, "bos_token_id": 0,
    "eos_token_id": 1, "use_sliding_window": true, "sliding_window": 24, "layer_types": [
    "sliding_attention", "sliding_attention", "full_attention", "sliding_attention",
    "sliding_attention", "full_attention", "sliding_attention"]})";
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0, 0.25f);
  SafetensorsWriter writer;
  const auto add = [&](const std::string& name, const Shape& shape) {
    std::vector<float> values(shape.num_elements());
    for (float& value : values) value = shape.rank() == 1 ? 1.0f : normal(random);
    writer.add(name, shape, WeightFormat::kBF16, values);
  };
  add("model.embed_tokens.weight", {512, 64});
  add("model.norm.weight", {64});
  for (int i = 0; i < 7; ++i) {
    const std::string layer = "model.layers." + std::to_string(i) + ".";
    add(layer + "input_layernorm.weight", {64});
    add(layer + "post_attention_layernorm.weight", {64});
    add(layer + "self_attn.q_norm.weight", {32});
    add(layer + "self_attn.k_norm.weight", {32});
    add(layer + "self_attn.q_proj.weight", {128, 64});
    add(layer + "self_attn.k_proj.weight", {64, 64});
    add(layer + "self_attn.v_proj.weight", {64, 64});
    add(layer + "self_attn.o_proj.weight", {64, 128});
    add(layer + "mlp.gate_proj.weight", {96, 64});
    add(layer + "mlp.up_proj.weight", {96, 64});
    add(layer + "mlp.down_proj.weight", {64, 96});
  }
  writer.write(folder / "model.safetensors");
}

}  // namespace pagoda::testing
