// Builders of configs in Hugging Face's format, for tests.
#pragma once

#include "model/hf/hf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/json.h"
#include "model/rope_frequencies.h"
#include "tests/support/layer_windows.h"

namespace pagoda {

using nlohmann::json;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

inline json base_config(const char* model_type) {
  return json{{"model_type", model_type}, {"vocab_size", 512},
              {"hidden_size", 64},        {"intermediate_size", 112},
              {"num_hidden_layers", 4},   {"num_attention_heads", 4},
              {"num_key_value_heads", 2}, {"max_position_embeddings", 2048},
              {"rms_norm_eps", 1e-5},     {"hidden_act", "silu"},
              {"eos_token_id", 1},        {"bos_token_id", 0},
              {"rope_theta", 10000.0},    {"tie_word_embeddings", true}};
}

inline Result<ModelConfig> parse(const json& config, const std::string& generation = "") {
  return parse_hf_config(json_text(config), generation);
}

inline json with(json config, const json& changes) {
  config.update(changes);
  return config;
}

inline json without(json config, const char* key) {
  config.erase(key);
  return config;
}

}  // namespace pagoda
