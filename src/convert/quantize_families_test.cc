// `pagoda quantize` over a folder of each family. The file has the folder's config, under the keys
// that llama.cpp's own converter writes, and yields the same answers.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "convert/quantize_fixture.h"
#include "convert/quantize_model.h"
#include "core/json.h"
#include "model/family.h"
#include "model/model_config.h"
#include "tests/support/layer_windows.h"
#include "tests/support/temporary_folder.h"

namespace pagoda {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

constexpr int kVocab = 288;

struct FamilyCase {
  const char* name;
  json changes;          // to config.json, for values that GGUF has no key for
  bool has_twin = true;  // there is a file of it by llama.cpp's converter
};

void PrintTo(const FamilyCase& each, std::ostream* out) {
  *out << each.name;
}

std::string utf8(int code_point) {
  if (code_point < 0x80) return std::string(1, static_cast<char>(code_point));
  return {static_cast<char>(0xc0 | code_point >> 6), static_cast<char>(0x80 | (code_point & 0x3f))};
}

// Returns a tokenizer with a token for each byte, as byte-level BPE spells them, after four special
// tokens.
json byte_tokenizer() {
  json vocab = json::object(), added = json::array();
  for (const char* special : {"<|bos|>", "<|eos|>", "<|endoftext|>", "<|user|>"}) {
    vocab[special] = added.size();
    added.push_back({{"id", added.size()}, {"content", special}, {"special", true}});
  }
  int next_substitute = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool prints =
        (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    vocab[utf8(prints ? byte : next_substitute++)] = 4 + byte;
  }
  for (json& token : added) {
    for (const char* flag : {"single_word", "lstrip", "rstrip", "normalized"}) token[flag] = false;
  }
  const json byte_level = {{"type", "ByteLevel"},
                           {"add_prefix_space", false},
                           {"trim_offsets", true},
                           {"use_regex", true}};
  return {{"added_tokens", added},
          {"pre_tokenizer", byte_level},
          {"decoder", byte_level},
          {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", json::array()}}}};
}

// Makes a copy of a tiny checkpoint with a tokenizer beside it.
void make_folder(const FamilyCase& each, const TemporaryFolder& folder) {
  const fs::path source = kData + each.name;
  fs::create_symlink(source / "model.safetensors", folder / "model.safetensors");
  std::ifstream file(source / "config.json");
  json config = parse_json(file);
  if (!each.changes.is_null()) config.update(each.changes);
  std::ofstream(folder / "config.json") << config;
  std::ofstream(folder / "tokenizer.json") << byte_tokenizer();
}

Status quantize(const TemporaryFolder& folder, const std::string& output) {
  return quantize_model({.input = folder.path(), .output = output, .format = WeightFormat::kQ8_0})
      .status();
}

void expect_near(float a, float b) {
  EXPECT_NEAR(a, b, 1e-5 * std::fabs(b));
}

void expect_same_rotation(const RopeTable& a, const RopeTable& b) {
  expect_near(static_cast<float>(a.theta), static_cast<float>(b.theta));
  expect_near(a.factor, b.factor);
  EXPECT_EQ(a.original_positions, b.original_positions);
  ASSERT_EQ(a.inv_freq.size(), b.inv_freq.size());
  ASSERT_EQ(a.long_inv_freq.size(), b.long_inv_freq.size());
  for (std::size_t i = 0; i < a.inv_freq.size(); ++i) expect_near(a.inv_freq[i], b.inv_freq[i]);
  for (std::size_t i = 0; i < a.long_inv_freq.size(); ++i)
    expect_near(a.long_inv_freq[i], b.long_inv_freq[i]);
}

// Expects equal configs, except for what the two formats store in different ways: the order of
// rows, norms, ends of a text.
void expect_same_config(const ModelConfig& a, const ModelConfig& b) {
  // Two of Granite's families have one name in GGUF.
  EXPECT_EQ(find_family(a.architecture)->gguf_architecture,
            find_family(b.architecture)->gguf_architecture);
  EXPECT_EQ(a.vocab_size, b.vocab_size);
  EXPECT_EQ(a.hidden_size, b.hidden_size);
  EXPECT_EQ(a.max_position_embeddings, b.max_position_embeddings);
  EXPECT_EQ(a.rms_norm_eps, b.rms_norm_eps);
  EXPECT_EQ(a.glu, b.glu);
  EXPECT_EQ(a.tie_word_embeddings, b.tie_word_embeddings);
  EXPECT_EQ(a.per_layer_width, b.per_layer_width);
  expect_near(a.embedding_factor, b.embedding_factor);
  expect_near(a.residual_factor, b.residual_factor);
  expect_near(a.logits_factor, b.logits_factor);
  expect_near(a.logits_cap, b.logits_cap);
  expect_near(a.query_growth.factor, b.query_growth.factor);
  if (b.query_growth.factor != 0) {
    EXPECT_EQ(a.query_growth.positions, b.query_growth.positions);
  }
  EXPECT_EQ(testing::windows_of(a), testing::windows_of(b));
  ASSERT_EQ(a.num_layers(), b.num_layers());
  for (int i = 0; i < a.num_layers(); ++i) {
    const AttentionConfig &x = a.layers[i].attention(), &y = b.layers[i].attention();
    EXPECT_EQ(x.num_heads, y.num_heads);
    EXPECT_EQ(x.num_kv_heads, y.num_kv_heads);
    EXPECT_EQ(x.head_dim, y.head_dim);
    EXPECT_EQ(a.layers[i].mlp, b.layers[i].mlp);
    EXPECT_EQ(x.kv_source, y.kv_source);
    EXPECT_EQ(x.keys_are_values, y.keys_are_values);
    EXPECT_EQ(x.rope_table, y.rope_table);
    expect_near(x.score_scale, y.score_scale);
    expect_near(x.score_cap, y.score_cap);
  }
  ASSERT_EQ(a.rope_tables.size(), b.rope_tables.size());
  for (std::size_t i = 0; i < a.rope_tables.size(); ++i)
    expect_same_rotation(a.rope_tables[i], b.rope_tables[i]);
}

void expect_same_answers(const std::string& a, const std::string& b) {
  const std::vector<float> before = prompt_logprobs(a, kVocab), after = prompt_logprobs(b, kVocab);
  ASSERT_EQ(after.size(), before.size());
  double sum = 0;
  for (std::size_t i = 0; i < before.size(); ++i) sum += std::fabs(before[i] - after[i]);
  EXPECT_LE(sum / static_cast<double>(before.size()), 0.03);
}

// Expects the tensors that llama.cpp's twin of the folder has, once it is quantised as well. Answers
// of a mixture would not do: rounded weights may choose other experts.
void expect_tensors_of_twin(const Checkpoint& written, const std::string& twin) {
  const TemporaryFolder target;
  const std::string output = target / "m.gguf";
  ASSERT_TRUE(
      quantize_model({.input = twin, .output = output, .format = WeightFormat::kQ8_0}).ok());
  const auto expected = *Checkpoint::open(output);
  for (const std::string& name : expected.names()) {
    const auto a = written.tensor(name), b = expected.tensor(name);
    ASSERT_TRUE(a.ok() && b.ok()) << name;
    EXPECT_EQ(a->format, b->format) << name;
    // llama.cpp has Ernie's biases as matrices of one row.
    EXPECT_EQ(a->shape.num_elements(), b->shape.num_elements()) << name;
    EXPECT_TRUE(std::ranges::equal(a->bytes, b->bytes)) << name;
  }
}

class QuantizeFamilyTest : public ::testing::TestWithParam<FamilyCase> {};

TEST_P(QuantizeFamilyTest, TheFileIsTheFoldersModel) {
  const TemporaryFolder folder, target;
  make_folder(GetParam(), folder);
  const std::string output = target / "m.gguf";
  const Status status = quantize(folder, output);
  ASSERT_TRUE(status.ok()) << status.message();
  const auto written = *Checkpoint::open(output);
  expect_same_config(*read_model_config(written),
                     *read_model_config(*Checkpoint::open(folder.path())));
  const std::string twin_path = kData + GetParam().name + "-gguf/model.gguf";
  if (read_model_config(written)->num_idle_parameters() > 0) {
    expect_tensors_of_twin(written, twin_path);
  } else {
    expect_same_answers(folder.path(), output);
  }
  if (!GetParam().has_twin) return;
  const auto twin = *Checkpoint::open(twin_path);
  expect_same_config(*read_model_config(written), *read_model_config(twin));
  EXPECT_EQ(written.names(), twin.names());
  const std::string prefix = std::string(*twin.gguf()->string("general.architecture")) + ".";
  for (const GgufEntry& entry : twin.gguf()->entries()) {
    // The attention factor is not written, because it follows from the scaling factor.
    if (entry.key.ends_with("yarn_attn_factor")) continue;
    // The layers that images feed are not counted, because the file is of the text model.
    if (entry.key.ends_with("n_deepstack_layers")) continue;
    if (!entry.key.starts_with(prefix)) continue;
    EXPECT_TRUE(written.gguf()->has(entry.key)) << entry.key;
  }
}

const json kScaledByWidth = {{"query_pre_attn_scalar", 16}};

INSTANTIATE_TEST_SUITE_P(
    AllFamilies, QuantizeFamilyTest,
    ::testing::Values(
        FamilyCase{"tiny-gemma2", kScaledByWidth}, FamilyCase{"tiny-gemma3", kScaledByWidth},
        FamilyCase{"tiny-gemma4", {}}, FamilyCase{"tiny-glm4", {}}, FamilyCase{"tiny-granite", {}},
        FamilyCase{"tiny-ministral3", {}}, FamilyCase{"tiny-olmo2", {}},
        FamilyCase{"tiny-olmo3", {}}, FamilyCase{"tiny-phi3", {}},
        FamilyCase{"tiny-qwen3-vl", {}, /*has_twin=*/false}, FamilyCase{"tiny-mixtral", {}},
        FamilyCase{"tiny-qwen2-moe", {}}, FamilyCase{"tiny-qwen3-moe", {}},
        FamilyCase{"tiny-olmoe", {{"rms_norm_eps", 1e-5}}}, FamilyCase{"tiny-granitemoe", {}},
        FamilyCase{"tiny-granitemoeshared", {}}, FamilyCase{"tiny-glm4-moe", {}},
        FamilyCase{"tiny-ernie4-5-moe", {}}, FamilyCase{"tiny-gpt-oss", {}},
        FamilyCase{"tiny-gpt-oss-mxfp4", {}}, FamilyCase{"tiny-gemma4-moe", {}},
        FamilyCase{"tiny-qwen3-vl-moe", {}},
        FamilyCase{
            "tiny-laguna",
            {{"layer_types",
              {"full_attention", "sliding_attention", "sliding_attention", "sliding_attention"}}}},
        FamilyCase{"tiny-smollm3", {{"use_sliding_window", false}, {"layer_types", nullptr}}}),
    [](const auto& info) {
      std::string name = info.param.name;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

// The tiny Gemmas' scale of scores does not follow from a head's width. So the file has it in the
// weights of their queries, or of the query norm.
TEST(QuantizeFamily, QueriesTakeUpAScaleWithoutAKey) {
  for (const char* name : {"tiny-gemma2", "tiny-gemma3"}) {
    const TemporaryFolder folder, target;
    make_folder({name, {}}, folder);
    ASSERT_TRUE(quantize(folder, target / "m.gguf").ok());
    expect_same_answers(folder.path(), target / "m.gguf");
  }
}

TEST(QuantizeFamily, WhatGgufHasNoKeyForIsRefusedByName) {
  const auto refusal = [](const FamilyCase& each) {
    const TemporaryFolder folder, target;
    make_folder(each, folder);
    return quantize(folder, target / "m.gguf").message();
  };
  EXPECT_THAT(refusal({"tiny-gemma2", {{"final_logit_softcapping", nullptr}}}),
              HasSubstr("final_logit_softcapping: GGUF has no key for it in a gemma2"));
  EXPECT_THAT(refusal({"tiny-smollm3", {}}), HasSubstr("windows of some layers alone"));
  EXPECT_THAT(refusal({"tiny-smollm3",
                       {{"use_sliding_window", false},
                        {"layer_types", nullptr},
                        {"no_rope_layers", {1, 1, 1, 1}}}}),
              HasSubstr("the rotation of layer 3"));
  EXPECT_THAT(refusal({"tiny-olmoe", {{"clip_qkv", 0.5}}}), HasSubstr("clip_qkv"));
}

}  // namespace
}  // namespace pagoda
