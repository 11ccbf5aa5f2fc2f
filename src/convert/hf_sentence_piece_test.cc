// A tokenizer.json of SentencePiece's pieces is written to a GGUF file and read back: every text
// has the same ids.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "convert/hf_vocabulary.h"
#include "core/json.h"
#include "serving/gguf_text.h"
#include "tests/support/temporary_folder.h"
#include "text/golden_files.h"
#include "text/tokenizer.h"
#include "weights/gguf.h"
#include "weights/gguf_writer.h"

namespace pagoda {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

constexpr int kVocabSize = 1010;  // ten more than the tokenizer has

// Returns a thousand pieces that SentencePiece has trained, with its scores.
const GgufVocabulary& trained_pieces() {
  static const GgufVocabulary vocabulary =
      golden_vocabulary(read_golden("sentence_piece.json")["vocabulary"]);
  return vocabulary;
}

// Returns all pairs of pieces that make a piece, the best score first, as transformers converts
// them.
std::vector<std::pair<std::string, std::string>> merges_of(const GgufVocabulary& pieces) {
  std::map<std::string, int> ids;
  for (std::size_t id = 0; id < pieces.tokens.size(); ++id)
    ids.emplace(pieces.tokens[id], static_cast<int>(id));
  std::vector<std::tuple<float, int, int>> ranked;
  for (std::size_t id = 0; id < pieces.tokens.size(); ++id) {
    const std::string& piece = pieces.tokens[id];
    if (pieces.token_types[id] != 1) continue;
    for (std::size_t middle = 1; middle < piece.size(); ++middle) {
      const auto left = ids.find(piece.substr(0, middle));
      const auto right = ids.find(piece.substr(middle));
      if (left == ids.end() || right == ids.end()) continue;
      ranked.emplace_back(-pieces.scores[id], left->second, right->second);
    }
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return std::get<0>(a) < std::get<0>(b); });
  std::vector<std::pair<std::string, std::string>> merges;
  for (const auto& [score, left, right] : ranked)
    merges.emplace_back(pieces.tokens[left], pieces.tokens[right]);
  return merges;
}

json added_token(int id, const std::string& content, bool is_special) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", is_special}};
}

json bos_first() {
  const json sequence = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  const json bos = {{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}};
  return {{"type", "TemplateProcessing"},
          {"single", {bos, sequence}},
          {"pair", {bos, sequence, sequence}},
          {"special_tokens", {{"<s>", {{"id", "<s>"}, {"ids", {1}}, {"tokens", {"<s>"}}}}}}};
}

// Returns a tokenizer as Llama 2 and TinyLlama have it.
json llama_tokenizer() {
  const GgufVocabulary& pieces = trained_pieces();
  json vocab = json::object();
  for (std::size_t id = 0; id < pieces.tokens.size(); ++id) vocab[pieces.tokens[id]] = id;
  json merges = json::array();
  for (const auto& [left, right] : merges_of(pieces)) merges.push_back(left + " " + right);
  const json replace_space = {
      {"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "▁"}};
  const json replace_back = {{"type", "Replace"}, {"pattern", {{"String", "▁"}}}, {"content", " "}};
  return {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens",
       {added_token(0, "<unk>", true), added_token(1, "<s>", true), added_token(2, "</s>", true),
        added_token(1000, "[TOOL]", true), added_token(1001, "<note>", false)}},
      {"normalizer",
       {{"type", "Sequence"},
        {"normalizers", {{{"type", "Prepend"}, {"prepend", "▁"}}, replace_space}}}},
      {"pre_tokenizer", nullptr},
      {"post_processor", bos_first()},
      {"decoder",
       {{"type", "Sequence"},
        {"decoders",
         {replace_back,
          {{"type", "ByteFallback"}},
          {{"type", "Fuse"}},
          {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}}}}},
      {"model",
       {{"type", "BPE"},
        {"dropout", nullptr},
        {"unk_token", "<unk>"},
        {"continuing_subword_prefix", nullptr},
        {"end_of_word_suffix", nullptr},
        {"fuse_unk", true},
        {"byte_fallback", true},
        {"vocab", vocab},
        {"merges", merges}}}};
}

// Returns a tokenizer as Mistral 0.3 and later ones have it.
json metaspace_tokenizer(const char* scheme, bool splits = false) {
  json tokenizer = llama_tokenizer();
  tokenizer["normalizer"] = nullptr;
  tokenizer["pre_tokenizer"] = {
      {"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", scheme}, {"split", splits}};
  return tokenizer;
}

// Returns a tokenizer as Gemma has it, which adds nothing before a text.
json tokenizer_without_prefix() {
  json tokenizer = llama_tokenizer();
  tokenizer["normalizer"] = tokenizer["normalizer"]["normalizers"][1];
  tokenizer["decoder"]["decoders"].erase(3);
  return tokenizer;
}

// Returns a tokenizer as Phi-3 has it, whose special tokens absorb the white space after them.
json tokenizer_that_strips() {
  json tokenizer = llama_tokenizer();
  for (json& token : tokenizer["added_tokens"]) {
    const std::string content = token["content"];
    token["rstrip"] = content != "<unk>" && content != "<s>";
  }
  return tokenizer;
}

void write(const json& tokenizer, const TemporaryFolder& folder) {
  std::ofstream(folder / "tokenizer.json") << json_text(tokenizer);
  std::ofstream(folder / "tokenizer_config.json")
      << R"({"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"})";
}

std::string refusal_of(const json& tokenizer) {
  const TemporaryFolder folder;
  write(tokenizer, folder);
  return read_hf_vocabulary(folder.path(), kVocabSize).status().message();
}

// Returns a text that mixes spaces, special tokens, repeated characters, and characters without a
// piece.
std::string random_text(std::mt19937& random) {
  static const std::vector<std::string> parts = {
      " ",    "  ",  "    ", "\n",      "\n\n",   "\t",     "the",    "The",    "ing",
      "word", "a",   "aa",   "aaaa",    "1",      "2026",   ".",      "...",    "-",
      "----", "===", "é",    "e\u0301", "中",     "日本",   "🙂",     "\u00a0", "▁",
      "▁▁",   "<s>", "</s>", "<unk>",   "[TOOL]", "<note>", "<0x0A>", "<",      "[",
      "un",   "ed",  " of",  " and ",   "it's"};
  std::string text;
  const int num_parts = std::uniform_int_distribution<int>(0, 25)(random);
  for (int i = 0; i < num_parts; ++i) text += parts[random() % parts.size()];
  return text;
}

std::vector<std::string> texts() {
  std::vector<std::string> texts = {"",         " ",        "  ",        "\n",     "<s>",
                                    "<s> ",     " <s>",     "<s>a",      "a</s>b", "[TOOL] x",
                                    "x[TOOL]y", " leading", "trailing ", "🙂🙂"};
  const auto golden = read_golden("sentence_piece.json");
  for (const auto& text : golden["texts"]) texts.push_back(text);
  std::mt19937 random(3);
  for (int i = 0; i < 1000; ++i) texts.push_back(random_text(random));
  return texts;
}

// Writes the tokenizer as `pagoda quantize` does, and reads it back as from any GGUF file.
GgufVocabulary through_a_file(const TemporaryFolder& folder) {
  const auto vocabulary = read_hf_vocabulary(folder.path(), kVocabSize);
  EXPECT_TRUE(vocabulary.ok()) << vocabulary.status().message();
  if (!vocabulary.ok()) return {};
  GgufPlan plan;
  const ModelConfig config{.vocab_size = kVocabSize, .eos_token_ids = {2}};
  EXPECT_TRUE(set_vocabulary_keys(*vocabulary, config, plan.metadata).ok());
  const std::string file = folder / "vocabulary.gguf";
  EXPECT_TRUE(
      write_gguf(file, plan, [](std::size_t, const GgufSink&) { return ok_status(); }).ok());
  return *read_gguf_vocabulary(**GgufFile::open(file));
}

TEST(HfSentencePiece, AGgufFileHasTheFoldersIds) {
  for (const json& tokenizer :
       {llama_tokenizer(), metaspace_tokenizer("first"), metaspace_tokenizer("always"),
        metaspace_tokenizer("never"), tokenizer_without_prefix(), tokenizer_that_strips()}) {
    const TemporaryFolder folder;
    write(tokenizer, folder);
    const auto original = *Tokenizer::from_folder(folder.path());
    const auto rebuilt = *Tokenizer::from_gguf(through_a_file(folder));
    for (const std::string& text : texts()) {
      for (const bool parses : {true, false}) {
        const EncodeOptions options = {.add_special_tokens = parses, .parse_special = parses};
        ASSERT_EQ(*rebuilt->encode(text, options), *original->encode(text, options))
            << tokenizer["pre_tokenizer"] << tokenizer["normalizer"] << '"' << text << '"';
      }
    }
  }
}

TEST(HfSentencePiece, TheKeysAreThoseOfLlamaCpp) {
  const TemporaryFolder folder;
  write(llama_tokenizer(), folder);
  const GgufVocabulary vocabulary = through_a_file(folder);
  EXPECT_EQ(vocabulary.model, "llama");
  EXPECT_EQ(vocabulary.pre, "default");
  EXPECT_TRUE(vocabulary.merges.empty());
  EXPECT_TRUE(vocabulary.metaspace.empty());
  EXPECT_EQ(vocabulary.add_space_prefix, true);
  EXPECT_EQ(vocabulary.add_bos_token, true);
  EXPECT_EQ(vocabulary.add_eos_token, false);
  EXPECT_EQ(vocabulary.unknown_token_id, 0);
  EXPECT_EQ(vocabulary.bos_token_id, 1);
  EXPECT_EQ(vocabulary.eos_token_id, 2);
  EXPECT_EQ(vocabulary.token_types[0], 2);
  EXPECT_EQ(vocabulary.token_types[1], 3);
  EXPECT_EQ(vocabulary.token_types[13], 6);  // <0x0A>
  EXPECT_EQ(vocabulary.token_types[500], 1);
  EXPECT_EQ(vocabulary.token_types[1000], 3);
  EXPECT_EQ(vocabulary.token_types[1001], 4);
  EXPECT_EQ(vocabulary.token_types[1002], 5);
  ASSERT_EQ(vocabulary.scores.size(), static_cast<std::size_t>(kVocabSize));
  EXPECT_EQ(*std::max_element(vocabulary.scores.begin() + 259, vocabulary.scores.end() - 10), -1);
}

TEST(HfSentencePiece, MergesThatScoresCannotSayStayMerges) {
  json tokenizer = tokenizer_without_prefix();
  tokenizer["model"]["merges"].erase(20);
  const TemporaryFolder folder;
  write(tokenizer, folder);
  const GgufVocabulary vocabulary = through_a_file(folder);
  EXPECT_EQ(vocabulary.model, "gemma4");
  EXPECT_EQ(vocabulary.unknown_token_id, 0);
  const auto original = *Tokenizer::from_folder(folder.path());
  const auto rebuilt = *Tokenizer::from_gguf(vocabulary);
  for (const std::string& text : texts()) {
    ASSERT_EQ(*rebuilt->encode(text), *original->encode(text)) << '"' << text << '"';
  }
}

TEST(HfSentencePiece, RefusesMergesThatScoresCannotSay) {
  json fewer = llama_tokenizer();
  fewer["model"]["merges"].erase(20);
  EXPECT_THAT(refusal_of(fewer), HasSubstr("its merges are not all that its pieces allow"));
  json splits = metaspace_tokenizer("first", /*splits=*/true);
  splits["model"]["vocab"]["▁▁"] = 1002;
  splits["model"]["merges"].push_back("▁ ▁");
  EXPECT_THAT(refusal_of(splits), HasSubstr("no GGUF vocabulary cuts text"));
  json lowercase = llama_tokenizer();
  lowercase["normalizer"]["normalizers"].push_back({{"type", "Lowercase"}});
  EXPECT_THAT(refusal_of(lowercase), HasSubstr("no GGUF vocabulary cuts text"));
}

}  // namespace
}  // namespace pagoda
