// A Hugging Face folder of a random llama whose rows have 256 values, whole blocks of any format.
// Rows of the tiny golden checkpoints have 64.
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

// Writes the checkpoint into an empty folder; the tokenizer is tiny-llama's, 512 tokens.
// Frequencies are linearly scaled, and two tokens end a text.
inline void make_wide_checkpoint(const TemporaryFolder& folder) {
  namespace fs = std::filesystem;
  const fs::path tiny = source_path("tests/golden/data/tiny-llama");
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "chat_template.jinja"}) {
    fs::copy_file(tiny / name, folder / name);
  }
  std::ofstream(folder / "config.json") << R"({"model_type": "llama", "vocab_size": 512,
    "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 512, "rms_norm_eps": 1e-5,
    "rope_theta": 20000.0, "rope_scaling": {"rope_type": "linear", "factor": 2.0},
    "tie_word_embeddings": true, "bos_token_id": 0, "eos_token_id": [1, 3]})";
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 0.06f);
  SafetensorsWriter writer;
  const auto add = [&](const std::string& name, const Shape& shape) {
    std::vector<float> values(shape.num_elements());
    for (float& value : values) value = shape.rank() == 1 ? 1.0f : normal(random);
    writer.add(name, shape, WeightFormat::kBF16, values);
  };
  add("model.embed_tokens.weight", {512, 256});
  add("model.norm.weight", {256});
  for (const std::string layer : {"model.layers.0.", "model.layers.1."}) {
    add(layer + "input_layernorm.weight", {256});
    add(layer + "post_attention_layernorm.weight", {256});
    add(layer + "self_attn.q_proj.weight", {256, 256});
    add(layer + "self_attn.k_proj.weight", {128, 256});
    add(layer + "self_attn.v_proj.weight", {128, 256});
    add(layer + "self_attn.o_proj.weight", {256, 256});
    add(layer + "mlp.gate_proj.weight", {512, 256});
    add(layer + "mlp.up_proj.weight", {512, 256});
    add(layer + "mlp.down_proj.weight", {256, 512});
  }
  writer.write(folder / "model.safetensors");
}

}  // namespace pagoda::testing
