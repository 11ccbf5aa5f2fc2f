#include "text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <random>
#include <thread>

#include "tests/support/temporary_folder.h"
#include "text/golden_files.h"

namespace pagoda {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::shared_ptr<const Tokenizer> tiny_tokenizer() {
  return *Tokenizer::from_folder(test_data() / "tiny");
}

std::vector<int> encode(const Tokenizer& tokenizer, std::string_view text,
                        EncodeOptions options = {}) {
  auto ids = tokenizer.encode(text, options);
  EXPECT_TRUE(ids.ok()) << ids.status().message();
  return ids.ok() ? *ids : std::vector<int>();
}

// Returns a small byte-level vocabulary: all bytes, then the given tokens.
GgufVocabulary byte_vocabulary(const std::vector<std::string>& further_tokens = {}) {
  GgufVocabulary vocabulary = golden_vocabulary(read_golden("pre_tokenizers.json")["vocabulary"]);
  vocabulary.tokens.resize(256);
  vocabulary.merges.clear();
  vocabulary.pre = "gpt-2";
  vocabulary.tokens.insert(vocabulary.tokens.end(), further_tokens.begin(), further_tokens.end());
  vocabulary.token_types.assign(vocabulary.tokens.size(), 1);
  return vocabulary;
}

// Returns Unicode text of all planes, with runs of white space.
std::string random_text(std::mt19937& random) {
  std::string text;
  const int length = static_cast<int>(random() % 30);
  for (int i = 0; i < length; ++i) {
    static constexpr char32_t kLimits[] = {0x80, 0x80, 0x80, 0x800, 0xD800, 0x20000};
    const char32_t c =
        random() % 4 == 0 ? U" \n\t 1a"[random() % 6] : random() % kLimits[random() % 6];
    if (c >= 0xD800 && c < 0xE000) continue;
    if (c < 0x80) {
      text += static_cast<char>(c);
    } else if (c < 0x800) {
      text += {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 63))};
    } else if (c < 0x10000) {
      text += {static_cast<char>(0xE0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 63)),
               static_cast<char>(0x80 | (c & 63))};
    } else {
      text += {static_cast<char>(0xF0 | c >> 18), static_cast<char>(0x80 | (c >> 12 & 63)),
               static_cast<char>(0x80 | (c >> 6 & 63)), static_cast<char>(0x80 | (c & 63))};
    }
  }
  return text;
}

TEST(TokenizerTest, RealCheckpointsIdsEqualTheGoldenOnes) {
  const auto golden = read_golden("smollm2.json");
  const auto tokenizer = *Tokenizer::from_gguf(golden_vocabulary(golden["vocabulary"]));
  ASSERT_EQ(golden["cases"].size(), 9);
  for (const auto& entry : golden["cases"]) {
    const std::string text = entry["text"];
    const auto ids = encode(*tokenizer, text, {.add_special_tokens = false});
    EXPECT_EQ(ids, entry["prompt_ids"].get<std::vector<int>>()) << text;
    EXPECT_EQ(*tokenizer->decode(ids, /*skip_special_tokens=*/false), text);
  }
}

TEST(TokenizerTest, ScoresMergeAsSentencePieceMerges) {
  const auto golden = read_golden("sentence_piece.json");
  GgufVocabulary vocabulary = golden_vocabulary(golden["vocabulary"]);
  const auto tokenizer = *Tokenizer::from_gguf(vocabulary);
  for (size_t i = 0; i < golden["texts"].size(); ++i) {
    const std::string text = golden["texts"][i];
    const auto ids = encode(*tokenizer, text, {.add_special_tokens = false});
    EXPECT_EQ(ids, golden["ids"][i].get<std::vector<int>>()) << text;
  }
  for (size_t i = 0; i < golden["id_lists"].size(); ++i) {
    const auto ids = golden["id_lists"][i].get<std::vector<int>>();
    EXPECT_EQ(*tokenizer->decode(ids, false), golden["decoded"][i].get<std::string>());
  }
}

TEST(TokenizerTest, TokenizerJsonEncodesAndDecodesAsHuggingFaceDoes) {
  const auto golden = read_golden("byte_level.json");
  const auto tokenizer = tiny_tokenizer();
  for (size_t i = 0; i < golden["texts"].size(); ++i) {
    EXPECT_EQ(encode(*tokenizer, golden["texts"][i].get<std::string>()),
              golden["ids"][i].get<std::vector<int>>());
  }
  for (size_t i = 0; i < golden["id_lists"].size(); ++i) {
    const auto ids = golden["id_lists"][i].get<std::vector<int>>();
    EXPECT_EQ(*tokenizer->decode(ids, false), golden["decoded"][i].get<std::string>());
    EXPECT_EQ(*tokenizer->decode(ids, true), golden["decoded_skipping"][i].get<std::string>());
  }
}

TEST(TokenizerTest, ByteLevelTextComesBackWhole) {
  GgufVocabulary vocabulary = golden_vocabulary(read_golden("pre_tokenizers.json")["vocabulary"]);
  for (const char* pre :
       {"gpt-2", "default", "llama-bpe", "tekken", "falcon", "deepseek-llm", "deepseek-v3"}) {
    vocabulary.pre = pre;
    const auto tokenizer = *Tokenizer::from_gguf(vocabulary);
    std::mt19937 random(11);
    for (int i = 0; i < 300; ++i) {
      const std::string text = random_text(random);
      EXPECT_EQ(*tokenizer->decode(encode(*tokenizer, text), true), text)
          << pre << ", seed 11, text " << i;
    }
  }
}

TEST(TokenizerTest, KnowsItsTokens) {
  const auto tokenizer = tiny_tokenizer();
  EXPECT_EQ(tokenizer->vocab_size(), 512);
  EXPECT_EQ(tokenizer->bos_token_id(), 0);
  EXPECT_EQ(tokenizer->eos_token_id(), 1);
  EXPECT_EQ(tokenizer->bos_token(), "<|bos|>");
  EXPECT_EQ(tokenizer->eos_token(), "<|eos|>");
  EXPECT_EQ(tokenizer->token_to_id("<|im_end|>"), 3);
  EXPECT_EQ(tokenizer->token_to_id("no such token"), std::nullopt);
  EXPECT_TRUE(tokenizer->is_special(2));
  EXPECT_FALSE(tokenizer->is_special(100));
  EXPECT_FALSE(tokenizer->is_special(-1));
  EXPECT_EQ(*tokenizer->id_to_token(3), "<|im_end|>");
  const int space = *tokenizer->token_to_id("Ġ");
  EXPECT_EQ(*tokenizer->token_bytes(space), " ");
}

TEST(TokenizerTest, SpecialTokensInATextAreParsedUnlessToldOtherwise) {
  const auto tokenizer = tiny_tokenizer();
  EXPECT_THAT(encode(*tokenizer, "<|im_end|><|eos|>"), ElementsAre(3, 1));
  const auto literal = encode(*tokenizer, "<|im_end|>", {.parse_special = false});
  EXPECT_GT(literal.size(), 1);
  EXPECT_EQ(*tokenizer->decode(literal, /*skip_special_tokens=*/true), "<|im_end|>");
}

TEST(TokenizerTest, BosComesOnceAndOnlyWhereWanted) {
  GgufVocabulary vocabulary = byte_vocabulary({"<bos>", "<eos>"});
  vocabulary.token_types[256] = vocabulary.token_types[257] = 3;
  vocabulary.bos_token_id = 256;
  vocabulary.eos_token_id = 257;
  const auto ids = [&](EncodeOptions options) {
    return encode(**Tokenizer::from_gguf(vocabulary), "", options);
  };
  EXPECT_THAT(ids({}), ElementsAre()) << "byte-level vocabularies start with nothing by default";
  vocabulary.pre = "llama-bpe";
  EXPECT_THAT(ids({}), ElementsAre(256));
  vocabulary.add_bos_token = false;
  EXPECT_THAT(ids({}), ElementsAre());
  vocabulary.add_bos_token = true;
  vocabulary.add_eos_token = true;
  EXPECT_THAT(ids({}), ElementsAre(256, 257));
  EXPECT_THAT(ids({.add_special_tokens = false}), ElementsAre());

  GgufVocabulary sentence_piece =
      golden_vocabulary(read_golden("sentence_piece.json")["vocabulary"]);
  EXPECT_THAT(encode(**Tokenizer::from_gguf(sentence_piece), ""), ElementsAre(1));
}

TEST(TokenizerTest, UserDefinedTokensAreMatchedButShown) {
  GgufVocabulary vocabulary = byte_vocabulary({"<think>", "<|end|>"});
  vocabulary.token_types[256] = 4;
  vocabulary.token_types[257] = 3;
  const auto tokenizer = *Tokenizer::from_gguf(vocabulary);
  EXPECT_THAT(encode(*tokenizer, "<think><|end|>"), ElementsAre(256, 257));
  EXPECT_EQ(*tokenizer->decode(std::vector{256, 257}, /*skip_special_tokens=*/true), "<think>");
}

TEST(TokenizerTest, TheSpacePrefixIsTheVocabularysChoice) {
  GgufVocabulary vocabulary = golden_vocabulary(read_golden("sentence_piece.json")["vocabulary"]);
  const auto with = *Tokenizer::from_gguf(vocabulary);
  vocabulary.add_space_prefix = false;
  const auto without = *Tokenizer::from_gguf(vocabulary);
  const EncodeOptions plain = {.add_special_tokens = false};
  EXPECT_EQ(encode(*with, "the", plain), encode(*without, " the", plain));
  EXPECT_EQ(*with->decode(encode(*with, " the", plain), false), " the");
  EXPECT_EQ(*without->decode(encode(*without, " the", plain), false), " the");
  // token_bytes() gives a token's bytes in the middle of a text, so the space stays.
  EXPECT_EQ(*with->token_bytes(encode(*with, "the", plain)[0]), " the");
  EXPECT_EQ(*with->token_bytes(*with->token_to_id("<0x0A>")), "\n");
}

TEST(TokenizerTest, TextThatIsNotUtf8IsRefused) {
  const auto tokenizer = tiny_tokenizer();
  for (const std::string text : {"ab\xff", "\xc3", "\xed\xa0\x80", "\xf8\x88\x80\x80\x80"}) {
    const auto ids = tokenizer->encode(text);
    ASSERT_FALSE(ids.ok());
    EXPECT_EQ(ids.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(ids.status().message(),
                HasSubstr("[tokenizer] expected UTF-8, got other bytes at offset"));
  }
  EXPECT_THAT(tokenizer->encode("ab\xff").status().message(), HasSubstr("offset 2"));
}

TEST(TokenizerTest, IdsOutOfRangeAreRefused) {
  const auto tokenizer = tiny_tokenizer();
  for (const int id : {-1, 512, 1 << 30}) {
    const auto text = tokenizer->decode(std::vector{5, id}, false);
    ASSERT_FALSE(text.ok());
    EXPECT_EQ(text.status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(text.status().message(),
              fmt::format("[tokenizer] token id: expected one below 512, got {}", id));
    EXPECT_FALSE(tokenizer->id_to_token(id).ok());
    EXPECT_FALSE(tokenizer->token_bytes(id).ok());
  }
}

struct BrokenVocabulary {
  const char* message;
  std::function<void(GgufVocabulary&)> change;
};

TEST(TokenizerTest, BrokenVocabulariesAreRefusedByName) {
  const BrokenVocabulary cases[] = {
      {"tokenizer.ggml.model: expected gpt2, llama or gemma4, got 'bert'",
       [](auto& v) { v.model = "bert"; }},
      {"tokenizer.ggml.pre: expected a pre-tokenizer that is known, got 'klingon'",
       [](auto& v) { v.pre = "klingon"; }},
      {"tokenizer.ggml.tokens: expected tokens, got none", [](auto& v) { v.tokens.clear(); }},
      {"tokenizer.ggml.token_type: expected 256 entries, got 3",
       [](auto& v) { v.token_types.resize(3); }},
      {"tokenizer.ggml.bos_token_id: expected an id below 256, got 256",
       [](auto& v) { v.bos_token_id = 256; }},
      {"tokenizer.ggml.eos_token_id: expected an id below 256, got -5",
       [](auto& v) { v.eos_token_id = -5; }},
      {"merges[0]: expected two tokens and a space between, got 'ab'",
       [](auto& v) { v.merges = {"ab"}; }},
      {"merges[1]: 'a b' needs the token 'ab', which is not there",
       [](auto& v) {
         v.tokens.push_back("cd");
         v.token_types.push_back(1);
         v.merges = {"c d", "a b"};
       }},
      {"token 7: expected UTF-8", [](auto& v) { v.tokens[7] = "\xff"; }},
      {"merges[0]: expected UTF-8", [](auto& v) { v.merges = {"\xff a"}; }},
      {"tokenizer.ggml.scores: expected 256 entries, got 2",
       [](auto& v) {
         v.model = "llama";
         v.scores = {1, 2};
       }},
      {"token 3: expected a finite score, got NaN",
       [](auto& v) {
         v.model = "llama";
         v.scores.assign(256, 0);
         v.scores[3] = std::nanf("");
       }},
      {"token 9: expected at most 1024 bytes, got 1000000",
       [](auto& v) {
         v.model = "llama";
         v.scores.assign(256, 0);
         v.tokens[9] = std::string(1000000, 'a');
       }},
  };
  for (const BrokenVocabulary& broken : cases) {
    GgufVocabulary vocabulary = byte_vocabulary();
    broken.change(vocabulary);
    const auto tokenizer = Tokenizer::from_gguf(vocabulary);
    ASSERT_FALSE(tokenizer.ok()) << broken.message;
    EXPECT_THAT(tokenizer.status().message(), HasSubstr(broken.message));
    EXPECT_THAT(tokenizer.status().message(), ::testing::StartsWith("[tokenizer]"));
  }
}

class FolderTest : public ::testing::Test {
 protected:
  void write(const char* name, std::string_view text) const {
    std::ofstream(folder_ / name) << text;
  }

  testing::TemporaryFolder temporary_;
  std::filesystem::path folder_ = temporary_.path();
};

TEST_F(FolderTest, BrokenFoldersAreRefusedByName) {
  EXPECT_EQ(Tokenizer::from_folder(folder_).status().code(), StatusCode::kNotFound);
  write("tokenizer.json", "{\"version\": 7");
  auto tokenizer = Tokenizer::from_folder(folder_);
  EXPECT_EQ(tokenizer.status().code(), StatusCode::kDataLoss);
  EXPECT_THAT(tokenizer.status().message(), HasSubstr("tokenizer.json: "));
  write("tokenizer.json",
        R"({"model": {"type": "WordLevel", "vocab": {"a": 0, "b": 1}, "unk_token": "a"}})");
  tokenizer = Tokenizer::from_folder(folder_);
  EXPECT_THAT(tokenizer.status().message(), HasSubstr("decoder: expected ByteLevel"));
  write("tokenizer.json",
        R"({"model": {"type": "BPE", "vocab": {}, "merges": []}, "decoder": {"type": "ByteLevel",
        "add_prefix_space": true, "trim_offsets": true, "use_regex": true}})");
  tokenizer = Tokenizer::from_folder(folder_);
  EXPECT_THAT(tokenizer.status().message(), HasSubstr("expected tokens, got none"));
  std::filesystem::copy(test_data() / "tiny" / "tokenizer.json", folder_,
                        std::filesystem::copy_options::overwrite_existing);
  EXPECT_TRUE(Tokenizer::from_folder(folder_).ok()) << "tokenizer_config.json is optional";
  write("tokenizer_config.json", "[]");
  tokenizer = Tokenizer::from_folder(folder_);
  EXPECT_THAT(tokenizer.status().message(),
              HasSubstr("tokenizer_config.json: expected a JSON object"));
  write("tokenizer_config.json", R"({"bos_token": null, "eos_token": {"content": "<|im_end|>"}})");
  tokenizer = Tokenizer::from_folder(folder_);
  EXPECT_EQ((*tokenizer)->bos_token_id(), std::nullopt);
  EXPECT_EQ((*tokenizer)->eos_token_id(), 3);
}

TEST_F(FolderTest, ThePostProcessorDecidesWhatIsAdded) {
  auto json = read_golden("tiny/tokenizer.json");
  json["post_processor"] = parse_ordered_json(R"({"type": "TemplateProcessing", "pair": [],
      "single": [{"SpecialToken": {"id": "<|bos|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
      "special_tokens": {"<|bos|>": {"id": "<|bos|>", "ids": [0], "tokens": ["<|bos|>"]}}})");
  json["truncation"] = parse_ordered_json(
      R"({"direction": "Right", "max_length": 1, "strategy": "LongestFirst", "stride": 0})");
  write("tokenizer.json", json_text(json));
  const auto tokenizer = *Tokenizer::from_folder(folder_);
  EXPECT_THAT(encode(*tokenizer, "<|eos|><|eos|>"), ElementsAre(0, 1, 1))
      << "and nothing is cut off";
  EXPECT_THAT(encode(*tokenizer, "<|eos|>", {.add_special_tokens = false}), ElementsAre(1));
}

TEST_F(FolderTest, ThePostProcessorPutsPairsTogether) {
  auto json = read_golden("tiny/tokenizer.json");
  json["post_processor"] = parse_ordered_json(R"({"type": "TemplateProcessing", "single": [],
      "pair": [{"SpecialToken": {"id": "<|bos|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
               {"SpecialToken": {"id": "<|eos|>", "type_id": 0}}, {"SpecialToken": {"id": "<|eos|>", "type_id": 0}},
               {"Sequence": {"id": "B", "type_id": 1}}, {"SpecialToken": {"id": "<|eos|>", "type_id": 1}}],
      "special_tokens": {"<|bos|>": {"id": "<|bos|>", "ids": [0], "tokens": ["<|bos|>"]},
                         "<|eos|>": {"id": "<|eos|>", "ids": [1], "tokens": ["<|eos|>"]}}})");
  write("tokenizer.json", json_text(json));
  const PairParts parts = *(*Tokenizer::from_folder(folder_))->pair_parts();
  EXPECT_THAT(parts.before, ElementsAre(0));
  EXPECT_THAT(parts.between, ElementsAre(1, 1));
  EXPECT_THAT(parts.after, ElementsAre(1));
  json["post_processor"] = nullptr;
  write("tokenizer.json", json_text(json));
  EXPECT_TRUE((*Tokenizer::from_folder(folder_))->pair_parts()->between.empty());
  // A post-processor for single texts alone cannot put two texts together.
  json["post_processor"] = parse_ordered_json(R"({"type": "TemplateProcessing", "pair": [],
      "single": [{"Sequence": {"id": "A", "type_id": 0}}], "special_tokens": {}})");
  write("tokenizer.json", json_text(json));
  EXPECT_THAT((*Tokenizer::from_folder(folder_))->pair_parts().status().message(),
              HasSubstr("expected two texts"));
}

TEST(GgufTokenizer, PairsHaveTheEndsThatTheFileAsksFor) {
  GgufVocabulary vocabulary = byte_vocabulary({"<s>", "</s>"});
  vocabulary.token_types[256] = vocabulary.token_types[257] = 3;
  vocabulary.bos_token_id = 256;
  vocabulary.eos_token_id = 257;
  vocabulary.add_bos_token = vocabulary.add_eos_token = true;
  const PairParts parts = *(*Tokenizer::from_gguf(vocabulary))->pair_parts();
  EXPECT_THAT(parts.before, ElementsAre(256));
  EXPECT_TRUE(parts.between.empty());
  EXPECT_THAT(parts.after, ElementsAre(257));
}

TEST_F(FolderTest, MetaspaceDecodersDropTheSpaceTheyPutFirst) {
  auto json = parse_ordered_json(R"({"model": {"type": "BPE", "vocab": {"▁a": 0, "b": 1, "▁": 2},
      "merges": []}, "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": false}})");
  write("tokenizer.json", json_text(json));
  EXPECT_EQ(*(*Tokenizer::from_folder(folder_))->decode(std::vector{0, 0, 1, 2}, false), "a ab ");
  json["decoder"]["prepend_scheme"] = "never";
  write("tokenizer.json", json_text(json));
  EXPECT_EQ(*(*Tokenizer::from_folder(folder_))->decode(std::vector{0, 0, 1, 2}, false), " a ab ");
}

TEST(TokenizerTest, ThreadsShareATokenizer) {
  const auto tokenizer = tiny_tokenizer();
  std::mt19937 random(5);
  std::vector<std::string> texts;
  std::vector<std::vector<int>> expected;
  for (int i = 0; i < 50; ++i) {
    texts.push_back(random_text(random) + "<|eos|>");
    expected.push_back(encode(*tokenizer, texts.back(), {.parse_special = i % 2 == 0}));
  }
  std::atomic<int> num_equal = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (size_t i = 0; i < texts.size(); ++i) {
        num_equal += *tokenizer->encode(texts[i], {.parse_special = i % 2 == 0}) == expected[i];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(num_equal, 200);
}

}  // namespace
}  // namespace pagoda
