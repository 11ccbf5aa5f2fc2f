// Config files and GGUF headers of widely used checkpoints, without weights. They are read to the
// values that transformers prints, or refused by name. testdata/make_checkpoints.py has made these
// values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/json.h"
#include "model/hf/hf_config.h"
#include "model/model_config.h"
#include "model/rope_frequencies.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/layer_windows.h"
#include "tests/support/source_path.h"
#include "tests/support/temporary_folder.h"

namespace pagoda {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

json read_checkpoints() {
  std::ifstream file(testing::source_path("src/model/testdata/checkpoints.json"));
  return parse_json(file);
}

void expect_sizes(const ModelConfig& config, const json& expected) {
  EXPECT_EQ(config.vocab_size, expected["vocab_size"]);
  EXPECT_EQ(config.hidden_size, expected["hidden_size"]);
  // A GGUF header alone does not show which layers have experts.
  if (const ExpertsConfig* const experts = config.layers.front().experts()) {
    EXPECT_EQ(experts->num_experts, expected["experts"]["num_experts"]);
    EXPECT_EQ(experts->rule.num_chosen, expected["experts"]["num_chosen"]);
    EXPECT_EQ(experts->intermediate_size, expected["experts"]["intermediate_size"]);
  } else {
    EXPECT_EQ(config.layers.front().dense_mlp().intermediate_size, expected["intermediate_size"]);
  }
  EXPECT_EQ(config.num_layers(), expected["num_hidden_layers"]);
  EXPECT_EQ(config.layers.front().attention().num_heads, expected["num_attention_heads"]);
  EXPECT_EQ(config.layers.front().attention().num_kv_heads, expected["num_key_value_heads"]);
  EXPECT_EQ(config.layers.front().attention().head_dim, expected["head_dim"]);
  EXPECT_EQ(config.max_position_embeddings, expected["max_position_embeddings"]);
  EXPECT_EQ(config.rms_norm_eps, expected["rms_norm_eps"].get<float>());
  if (!expected["bos_token_id"].is_null()) {
    EXPECT_EQ(config.bos_token_id, expected["bos_token_id"].get<int>());
  }
}

// Returns the frequencies that transformers computes from a rotation's parameters, for contexts no
// longer than the original one.
std::vector<float> frequencies(const json& rope, int head_dim, int trained_positions) {
  const std::string type = rope["rope_type"];
  const int rotary_dim = static_cast<int>(head_dim * rope.value("partial_rotary_factor", 1.0));
  RopeScaling scaling;
  scaling.original_positions = rope.value("original_max_position_embeddings", trained_positions);
  if (type == "linear" || type == "llama3" || type == "yarn") scaling.factor = rope["factor"];
  if (type == "linear") scaling.type = RopeScalingType::kLinear;
  if (type == "yarn") scaling.type = RopeScalingType::kYarn;
  scaling.truncates = rope.value("truncate", true);
  if (type == "llama3") {
    scaling.type = RopeScalingType::kLlama3;
    scaling.low_freq_factor = rope["low_freq_factor"];
    scaling.high_freq_factor = rope["high_freq_factor"];
  }
  std::vector<float> inv_freq = rope_inverse_frequencies(rotary_dim, rope["rope_theta"], scaling);
  for (std::size_t i = 0; type == "longrope" && i < inv_freq.size(); ++i)
    inv_freq[i] /= rope["short_factor"][i].get<float>();
  return inv_freq;
}

// Expects the rotations. Layers with a window may have a table of their own, which is the last.
void expect_rotations(const ModelConfig& config, const json& expected) {
  const json& rope = expected["rope_parameters"];
  const json& full = rope.value("full_attention", rope);
  const int head_dim = expected["head_dim"], trained = expected["max_position_embeddings"];
  EXPECT_EQ(config.rope_tables.front().theta, full["rope_theta"]);
  EXPECT_EQ(config.rope_tables.front().inv_freq, frequencies(full, head_dim, trained));
  if (!rope.contains("sliding_attention")) return;
  const json& sliding = rope["sliding_attention"];
  EXPECT_EQ(config.rope_tables.back().theta, sliding["rope_theta"]);
  EXPECT_EQ(config.rope_tables.back().inv_freq, frequencies(sliding, head_dim, trained));
  for (const LayerConfig& layer : config.layers)
    EXPECT_EQ(layer.attention().rope_table, layer.attention().window > 0);
}

TEST(RealCheckpointsTest, ConfigFilesAreReadAsTransformersReadsThemOrRefusedByName) {
  const json checkpoints = read_checkpoints();
  EXPECT_GE(checkpoints.size(), 20u);
  for (const json& checkpoint : checkpoints) {
    SCOPED_TRACE(checkpoint["name"]);
    const json generation = checkpoint.value("generation_config", json());
    const auto config = parse_hf_config(checkpoint["config"].dump(),
                                        generation.is_null() ? "" : json_text(generation));
    if (checkpoint.contains("refused")) {
      EXPECT_EQ(config.status().code(), StatusCode::kUnsupported);
      EXPECT_THAT(config.status().message(), HasSubstr(checkpoint["refused"].get<std::string>()));
      continue;
    }
    ASSERT_TRUE(config.ok()) << config.status().message();
    const json& expected = checkpoint["expected"];
    expect_sizes(*config, expected);
    EXPECT_EQ(config->tie_word_embeddings, expected["tie_word_embeddings"]);
    EXPECT_EQ(testing::windows_of(*config), expected["layer_windows"].get<std::vector<int>>());
    EXPECT_EQ(config->eos_token_ids, expected["eos_token_ids"].get<std::vector<int>>());
    expect_rotations(*config, expected);
  }
}

// Opens a header as a converter writes it: the keys, and the embedding's shape with a hole as its
// data.
Checkpoint open_header(const json& keys, const json& config, const std::string& path) {
  testing::GgufWriter writer;
  for (const auto& [key, value] : keys.items()) {
    if (value.is_string()) writer.set(key, value.get<std::string>());
    if (value.is_boolean()) writer.set(key, value.get<bool>());
    if (value.is_number_integer()) writer.set(key, value.get<std::uint32_t>());
    if (value.is_number_float()) writer.set(key, value.get<float>());
  }
  const Shape shape = {config["vocab_size"].get<int>(), config["hidden_size"].get<int>()};
  writer.add_raw_tensor("token_embd.weight", shape,
                        testing::GgufWriter::type_id(WeightFormat::kQ8_0), {});
  writer.write(path);
  const auto hole = packed_bytes(WeightFormat::kQ8_0, shape.num_elements());
  std::filesystem::resize_file(path, std::filesystem::file_size(path) + hole);
  const auto checkpoint = Checkpoint::open(path);
  PAGODA_CHECK(checkpoint.ok(), checkpoint.status().message());
  return *checkpoint;
}

TEST(RealCheckpointsTest, GgufHeadersAreReadAsTransformersReadsTheirSourceOrRefusedByName) {
  const testing::TemporaryFolder folder;
  for (const json& checkpoint : read_checkpoints()) {
    if (!checkpoint.contains("gguf")) continue;
    SCOPED_TRACE(checkpoint["name"]);
    const auto config = read_model_config(
        open_header(checkpoint["gguf"], checkpoint["config"], folder / "header.gguf"));
    if (checkpoint.contains("gguf_refused")) {
      EXPECT_EQ(config.status().code(), StatusCode::kUnsupported);
      EXPECT_THAT(config.status().message(),
                  HasSubstr(checkpoint["gguf_refused"].get<std::string>()));
      continue;
    }
    ASSERT_TRUE(config.ok()) << config.status().message();
    expect_sizes(*config, checkpoint["expected"]);
    EXPECT_THAT(config->eos_token_ids,
                ::testing::Each(::testing::AnyOfArray(
                    checkpoint["expected"]["eos_token_ids"].get<std::vector<int>>())));
  }
}

}  // namespace
}  // namespace pagoda
