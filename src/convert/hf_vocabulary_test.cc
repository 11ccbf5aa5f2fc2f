// Finds GGUF's name for a tokenizer.json: tiny-llama's, with pieces of digits and letters that the
// expressions split differently.
#include "convert/hf_vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "core/json.h"
#include "tests/support/source_path.h"
#include "tests/support/temporary_folder.h"
#include "weights/gguf.h"

namespace pagoda {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

const std::string kTiny = testing::source_path("tests/golden/data/tiny-llama/");
constexpr int kNumWords = 530;

json read_json(const std::string& path) {
  std::ifstream file(path);
  return parse_json(file);
}

// Returns the tiny tokenizer of 512 tokens with seven more, which join digits, letters of both
// cases, and apostrophes.
json tokenizer_with_longer_pieces() {
  json tokenizer = read_json(kTiny + "tokenizer.json");
  json& model = tokenizer["model"];
  const std::pair<const char*, const char*> merges[] = {
      {"1", "2"}, {"12", "3"}, {"123", "4"}, {"0", "1"}, {"'", "L"}, {"'L", "L"}, {"!", "?"}};
  int id = 512;
  for (const auto& [left, right] : merges) {
    model["vocab"][std::string(left) + right] = id++;
    model["merges"].push_back({left, right});
  }
  return tokenizer;
}

json split_then_bytes(const char* expression) {
  const json split = {{"type", "Split"},
                      {"pattern", {{"Regex", expression}}},
                      {"behavior", "Isolated"},
                      {"invert", false}};
  const json bytes = {{"type", "ByteLevel"},
                      {"add_prefix_space", false},
                      {"trim_offsets", true},
                      {"use_regex", false}};
  return {{"type", "Sequence"}, {"pretokenizers", {split, bytes}}};
}

Result<GgufVocabulary> read(const json& tokenizer, int vocab_size = kNumWords) {
  const TemporaryFolder folder;
  std::ofstream(folder / "tokenizer.json") << json_text(tokenizer);
  std::filesystem::copy_file(kTiny + "tokenizer_config.json", folder / "tokenizer_config.json");
  return read_hf_vocabulary(folder.path(), vocab_size);
}

std::string name_of(const json& tokenizer) {
  const auto vocabulary = read(tokenizer);
  return vocabulary.ok() ? vocabulary->pre : vocabulary.status().message();
}

constexpr const char* kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

TEST(HfVocabulary, FindsTheNameOfTheExpression) {
  json tokenizer = tokenizer_with_longer_pieces();
  EXPECT_EQ(name_of(tokenizer), "gpt-2");
  json digits = tokenizer;
  digits["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       {{{"type", "Digits"}, {"individual_digits", true}}, tokenizer["pre_tokenizer"]}}};
  EXPECT_EQ(name_of(digits), "smollm");
  json llama3 = tokenizer;
  llama3["pre_tokenizer"] = split_then_bytes(kLlama3);
  EXPECT_EQ(name_of(llama3), "dbrx");
  llama3["model"]["ignore_merges"] = true;
  EXPECT_EQ(name_of(llama3), "llama-bpe");
  json qwen2 = tokenizer;
  qwen2["pre_tokenizer"] = split_then_bytes(kQwen2);
  EXPECT_EQ(name_of(qwen2), "stablelm2");
  qwen2["normalizer"] = {{"type", "NFC"}};
  EXPECT_EQ(name_of(qwen2), "qwen2");
}

// The last merges join characters that the other two expressions split unlike Qwen 2's.
TEST(HfVocabulary, FindsTheNamesOfItsRelatives) {
  json tokenizer = tokenizer_with_longer_pieces();
  json& model = tokenizer["model"];
  int id = 519;
  for (const auto& [left, right] : {std::pair("e", "Ġ"), {"!?", "Ċ"}, {".", "Ċ"}, {"Ċ", "Ċ"}}) {
    const std::string token = std::string(left) + right;
    if (model["vocab"].contains(token)) continue;
    model["vocab"][token] = id++;
    model["merges"].push_back({left, right});
  }
  const std::pair<const char*, const char*> expressions[] = {
      {"stablelm2", kQwen2},
      {"seed-coder",
       R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)"},
      {"exaone-moe",
       R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)"},
  };
  for (const auto& [name, expression] : expressions) {
    tokenizer["pre_tokenizer"] = split_then_bytes(expression);
    EXPECT_EQ(name_of(tokenizer), name);
  }
}

TEST(HfVocabulary, NamesWhatItFillsAndWhatEndsAText) {
  json tokenizer = tokenizer_with_longer_pieces();
  tokenizer["added_tokens"].push_back({{"id", 519},
                                       {"content", "<tool>"},
                                       {"single_word", false},
                                       {"lstrip", false},
                                       {"rstrip", false},
                                       {"normalized", false},
                                       {"special", false}});
  tokenizer["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single",
       {{{"SpecialToken", {{"id", "<|bos|>"}, {"type_id", 0}}}},
        {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
      {"pair",
       {{{"Sequence", {{"id", "A"}, {"type_id", 0}}}},
        {{"Sequence", {{"id", "B"}, {"type_id", 1}}}}}},
      {"special_tokens",
       {{"<|bos|>", {{"id", "<|bos|>"}, {"ids", {0}}, {"tokens", {"<|bos|>"}}}}}}};
  const auto vocabulary = read(tokenizer);
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status().message();
  EXPECT_EQ(vocabulary->tokens.size(), static_cast<std::size_t>(kNumWords));
  EXPECT_EQ(vocabulary->tokens[0], "<|bos|>");
  EXPECT_EQ(vocabulary->tokens[514], "1234");
  EXPECT_EQ(vocabulary->tokens[519], "<tool>");
  EXPECT_EQ(vocabulary->tokens[520], "[PAD520]");
  EXPECT_EQ(vocabulary->token_types[0], 3);
  EXPECT_EQ(vocabulary->token_types[514], 1);
  EXPECT_EQ(vocabulary->token_types[520], 5);
  EXPECT_EQ(vocabulary->token_types[519], 4);
  EXPECT_EQ(vocabulary->merges.back(), "! ?");
  EXPECT_TRUE(vocabulary->add_bos_token.value());
  EXPECT_FALSE(vocabulary->add_eos_token.value());
}

TEST(HfVocabulary, RefusesWhatGgufCannotSay) {
  json lowercase = tokenizer_with_longer_pieces();
  lowercase["normalizer"] = {{"type", "Lowercase"}};
  EXPECT_THAT(name_of(lowercase), HasSubstr("no GGUF vocabulary cuts text as this tokenizer does"));
  json pieces = tokenizer_with_longer_pieces();
  pieces["model"]["byte_fallback"] = true;
  EXPECT_THAT(name_of(pieces), HasSubstr("no GGUF vocabulary cuts text as this tokenizer does"));
  json words = tokenizer_with_longer_pieces();
  words["model"] = {{"type", "WordLevel"}, {"vocab", {{"a", 0}}}, {"unk_token", "a"}};
  EXPECT_THAT(name_of(words), HasSubstr("only BPE becomes a GGUF vocabulary"));
  EXPECT_THAT(read(tokenizer_with_longer_pieces(), 400).status().message(),
              HasSubstr("expected token ids of 0 to 399"));
  json wide_merge = tokenizer_with_longer_pieces();
  wide_merge["model"]["vocab"]["a b"] = 519;
  wide_merge["model"]["vocab"]["a b!"] = 520;
  wide_merge["model"]["merges"].push_back({"a b", "!"});
  EXPECT_THAT(name_of(wide_merge), HasSubstr("expected merges of two tokens"));
}

}  // namespace
}  // namespace pagoda
