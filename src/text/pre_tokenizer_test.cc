// Tests the names that GGUF files give to pre-tokenizers: the ids of each are compared with those
// of Hugging Face's tokenizers (pre_tokenizers.json) and of llama.cpp (llama_cpp.json).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "text/golden_files.h"
#include "text/tokenizer.h"

namespace pagoda {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int kPlainType = 1;
constexpr int kControlType = 3;

using Golden = OrderedJson;

GgufVocabulary shared_vocabulary() {
  return golden_vocabulary(read_golden("pre_tokenizers.json")["vocabulary"]);
}

std::vector<int> ids_of(const GgufVocabulary& vocabulary, std::string_view text,
                        EncodeOptions options = {.add_special_tokens = false}) {
  const auto tokenizer = Tokenizer::from_gguf(vocabulary);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  return tokenizer.ok() ? (*tokenizer)->encode(text, options).value() : std::vector<int>();
}

// Checks that all texts have the golden ids.
void expect_golden_ids(const GgufVocabulary& vocabulary, const Golden& texts, const Golden& ids) {
  const auto tokenizer = Tokenizer::from_gguf(vocabulary);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  ASSERT_EQ(texts.size(), ids.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(
        (*tokenizer)->encode(texts[i].get<std::string>(), {.add_special_tokens = false}).value(),
        ids[i].get<std::vector<int>>())
        << vocabulary.pre << ": " << texts[i];
  }
}

// Returns all names that llama.cpp has, grouped: names of one group cut texts in the same way.
const std::vector<std::vector<const char*>>& names_of_each_way() {
  static const std::vector<std::vector<const char*>> names = {
      {"gpt-2", "phi-2", "jina-es", "jina-de", "jina-v1-en", "jina-v2-es", "jina-v2-de",
       "jina-v2-code", "roberta-bpe", "gigachat", "exaone4", "mellum", "modern-bert", "a.x-4.0",
       "mpt", "olmo", "jais", "trillion", "granite-docling"},
      {"default", ""},
      {"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b",
       "mellum2"},
      {"falcon"},
      {"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2",
       "jina-v5-nano"},
      {"glm4", "glm5"},
      {"dbrx", "smaug-bpe", "chatglm-bpe"},
      {"minicpm5"},
      {"jais-2"},
      {"qwen2", "deepseek-r1-qwen", "kormo", "megrez", "f2llmv2"},
      {"stablelm2", "hunyuan", "solar-open", "grok-2", "bailingmoe", "bailingmoe2", "llada-moe"},
      {"laguna"},
      {"qwen35"},
      {"ufakzeka"},
      {"seed-coder"},
      {"exaone-moe"},
      {"tekken"},
      {"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"},
      {"granite-embed-multi-97m"},
      {"tiny_aya", "cohere2moe"},
      {"youtu"},
      {"kimi-k2"},
      {"deepseek-llm"},
      {"deepseek-coder"},
      {"deepseek-v3", "hunyuan-dense", "hy_v4", "joyai-llm"},
      {"spark2_5"},
      {"afmoe"},
      {"bloom", "poro-chat", "gpt3-finnish"},
      {"viking"},
      {"superbpe"},
      {"chameleon"},
      {"gemma4", "granite-embed-multi-311m", "sarvam-moe"},
  };
  return names;
}

TEST(PreTokenizerTest, EachCutsAsItsCheckpointDoes) {
  const Golden golden = read_golden("pre_tokenizers.json");
  GgufVocabulary vocabulary = shared_vocabulary();
  for (const auto& [pre, ids] : golden["ids"].items()) {
    vocabulary.pre = pre;
    expect_golden_ids(vocabulary, golden["texts"], ids);
  }
}

TEST(PreTokenizerTest, EachCutsAsLlamaCppDoes) {
  const Golden golden = read_golden("llama_cpp.json");
  GgufVocabulary vocabulary = shared_vocabulary();
  for (const auto& [pre, ids] : golden["ids"].items()) {
    vocabulary.pre = pre;
    expect_golden_ids(vocabulary, golden["texts"], ids);
  }
}

TEST(PreTokenizerTest, NamesOfOneWayGiveTheSameIds) {
  const Golden texts = read_golden("pre_tokenizers.json")["texts"];
  GgufVocabulary vocabulary = shared_vocabulary();
  for (const auto& names : names_of_each_way()) {
    vocabulary.pre = names.front();
    const auto first = *Tokenizer::from_gguf(vocabulary);
    Golden ids;
    for (const auto& text : texts) {
      ids.push_back(first->encode(text.get<std::string>(), {.add_special_tokens = false}).value());
    }
    for (const char* name : names) {
      vocabulary.pre = name;
      expect_golden_ids(vocabulary, texts, ids);
    }
  }
}

// No merge makes this token. So only pre-tokenizers that look up whole pieces first find it.
TEST(PreTokenizerTest, WholePiecesAreTakenWithoutMergesWhereTheCheckpointDoesSo) {
  GgufVocabulary vocabulary = shared_vocabulary();
  vocabulary.tokens.push_back("qzj");
  vocabulary.token_types.push_back(kPlainType);
  std::vector<std::string> whole;
  for (const auto& names : names_of_each_way()) {
    vocabulary.pre = names.front();
    if (ids_of(vocabulary, "qzj").size() == 1) whole.push_back(vocabulary.pre);
  }
  EXPECT_THAT(whole, ElementsAre("llama-bpe", "glm4", "minicpm5", "tekken",
                                 "granite-embed-multi-97m", "youtu"));
}

TEST(PreTokenizerTest, SomeStartATextWithBosWhereTheFileDoesNotSay) {
  GgufVocabulary vocabulary = shared_vocabulary();
  vocabulary.bos_token_id = 7;
  std::vector<std::string> by_default;
  std::vector<std::string> always;
  for (const auto& names : names_of_each_way()) {
    for (const char* name : names) {
      vocabulary.pre = name;
      vocabulary.add_bos_token.reset();
      if (!ids_of(vocabulary, "", {}).empty()) by_default.push_back(name);
      vocabulary.add_bos_token = false;
      if (!ids_of(vocabulary, "", {}).empty()) always.push_back(name);
    }
  }
  EXPECT_THAT(by_default, ElementsAre("llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1",
                                      "pixtral", "midm-2.0", "lfm2", "jina-v5-nano", "tekken",
                                      "chameleon", "gemma4", "granite-embed-multi-311m"));
  EXPECT_THAT(always, ElementsAre("gemma4", "granite-embed-multi-311m"));
}

TEST(PreTokenizerTest, MasksOfEncodersTakeTheSpaceBeforeThem) {
  GgufVocabulary vocabulary = shared_vocabulary();
  vocabulary.tokens.insert(vocabulary.tokens.end(), {"<mask>", "[MASK]"});
  vocabulary.token_types.resize(vocabulary.tokens.size(), kControlType);
  const int mask = static_cast<int>(vocabulary.tokens.size()) - 2;
  const int bert_mask = mask + 1;
  vocabulary.pre = "gpt-2";
  EXPECT_THAT(ids_of(vocabulary, " \n<mask>"), ElementsAre(::testing::_, mask));
  for (const char* name : {"jina-v2-es", "jina-v2-de", "jina-v2-code"}) {
    vocabulary.pre = name;
    EXPECT_THAT(ids_of(vocabulary, " \n<mask> [MASK]"), ElementsAre(mask, ::testing::_, bert_mask));
  }
  vocabulary.pre = "modern-bert";
  EXPECT_THAT(ids_of(vocabulary, " \n[MASK]"), ElementsAre(bert_mask));
}

// llama.cpp also has the name "whitespace", but for an embedding model, and it drops spaces.
TEST(PreTokenizerTest, NamesThatAreNotKnownAreRefused) {
  GgufVocabulary vocabulary = shared_vocabulary();
  for (const std::string name : {"whitespace", "gpt-2 phi-2", " ", "GPT-2", "gpt-2 ", "klingon"}) {
    vocabulary.pre = name;
    const auto tokenizer = Tokenizer::from_gguf(vocabulary);
    ASSERT_FALSE(tokenizer.ok()) << name;
    EXPECT_EQ(tokenizer.status().code(), StatusCode::kUnsupported);
    EXPECT_EQ(tokenizer.status().message(),
              fmt::format("[tokenizer] tokenizer.ggml.pre: expected a pre-tokenizer that is known, "
                          "got '{}'",
                          name));
  }
}

TEST(PreTokenizerTest, ModelsOfOtherKindsAreRefusedByName) {
  GgufVocabulary vocabulary = shared_vocabulary();
  for (const std::string model :
       {"bert", "t5", "rwkv", "plamo2", "hybriddna", "whitespace", "none", "no_vocab", ""}) {
    vocabulary.model = model;
    const auto tokenizer = Tokenizer::from_gguf(vocabulary);
    ASSERT_FALSE(tokenizer.ok()) << model;
    EXPECT_EQ(tokenizer.status().code(), StatusCode::kUnsupported);
    EXPECT_EQ(tokenizer.status().message(),
              fmt::format("[tokenizer] tokenizer.ggml.model: expected gpt2, llama or gemma4, got "
                          "'{}'",
                          model));
  }
}

// The number is far longer than any in a real text. Cutting it takes time linear in its length.
TEST(PreTokenizerTest, LongNumbersAreCutInThreesFromTheRight) {
  GgufVocabulary vocabulary = shared_vocabulary();
  vocabulary.merges = {"7 7", "77 7"};
  vocabulary.tokens.insert(vocabulary.tokens.end(), {"77", "777"});
  vocabulary.token_types.assign(vocabulary.tokens.size(), kPlainType);
  constexpr int kNumDigits = 200'000;  // two more than a multiple of three
  for (const char* pre : {"tiny_aya", "superbpe", "afmoe"}) {
    vocabulary.pre = pre;
    const std::vector<int> ids = ids_of(vocabulary, std::string(kNumDigits, '7'));
    const std::vector<int> threes = ids_of(vocabulary, "777");
    const std::vector<int> two = ids_of(vocabulary, "77");
    ASSERT_EQ(threes.size(), 1U) << pre;
    ASSERT_EQ(two.size(), 1U) << pre;
    ASSERT_EQ(ids.size(), kNumDigits / 3 + 1) << pre;
    EXPECT_EQ(ids.front(), two.front()) << pre;
    EXPECT_TRUE(std::all_of(ids.begin() + 1, ids.end(), [&](int id) { return id == threes[0]; }))
        << pre;
  }
}

TEST(PreTokenizerTest, Gemma4MergesCharactersAsLlamaCppAndHuggingFaceDo) {
  const Golden golden = read_golden("llama_cpp.json")["gemma4"];
  GgufVocabulary vocabulary = golden_vocabulary(golden["vocabulary"]);
  expect_golden_ids(vocabulary, golden["texts"], golden["ids"]);
  const auto tokenizer = *Tokenizer::from_gguf(vocabulary);
  for (size_t i = 0; i < golden["ids"].size(); ++i) {
    const auto ids = golden["ids"][i].get<std::vector<int>>();
    EXPECT_EQ(*tokenizer->decode(ids, /*skip_special_tokens=*/false),
              golden["decoded"][i].get<std::string>());
  }
  EXPECT_THAT(tokenizer->encode("").value(), ElementsAre(2)) << "BOS";
  EXPECT_EQ(*tokenizer->token_bytes(*tokenizer->token_to_id("<0xE7>")), "\xE7");
  EXPECT_EQ(*tokenizer->token_bytes(*tokenizer->token_to_id("▁")), " ");

  // With the model gemma4 the pre-tokenizer's name is ignored. With the model gpt2 a name of this
  // group has the same effect.
  vocabulary.pre = "klingon";
  expect_golden_ids(vocabulary, golden["texts"], golden["ids"]);
  vocabulary.model = "gpt2";
  for (const char* pre : {"gemma4", "granite-embed-multi-311m", "sarvam-moe"}) {
    vocabulary.pre = pre;
    expect_golden_ids(vocabulary, golden["texts"], golden["ids"]);
  }
}

TEST(PreTokenizerTest, Phi3sSpecialTokensTakeTheWhiteSpaceBehindThem) {
  const Golden golden = read_golden("llama_cpp.json")["phi3"];
  GgufVocabulary vocabulary = golden_vocabulary(read_golden("sentence_piece.json")["vocabulary"]);
  for (const auto& token : golden["added"]) {
    vocabulary.tokens.push_back(token[1]);
    vocabulary.token_types.push_back(token[2]);
    vocabulary.scores.push_back(0);
  }
  for (const auto& [name, ids] : golden["ids"].items()) {
    vocabulary.model_name = name;
    expect_golden_ids(vocabulary, golden["texts"], ids);
  }
  // llama.cpp does not recognise this spelling, although its own converter writes it. The model is
  // the same.
  vocabulary.model_name = "Phi 3.5 Mini Instruct";
  expect_golden_ids(vocabulary, golden["texts"], golden["ids"]["Phi-3-mini"]);
  // A special token encoded as plain text strips no white space.
  const auto tokenizer = *Tokenizer::from_gguf(vocabulary);
  const EncodeOptions literal = {.add_special_tokens = false, .parse_special = false};
  EXPECT_EQ(*tokenizer->decode(*tokenizer->encode("<|user|>\n a", literal), true), "<|user|>\n a");
}

TEST(PreTokenizerTest, CharactersWithoutTokensAndBytesAreUnknown) {
  GgufVocabulary vocabulary = {.model = "gemma4", .tokens = {"<unk>", "a", "▁"}};
  vocabulary.token_types = {2, kPlainType, kPlainType};
  EXPECT_THAT(ids_of(vocabulary, "é"), IsEmpty());
  vocabulary.unknown_token_id = 0;
  EXPECT_THAT(ids_of(vocabulary, "a éé a"), ElementsAre(1, 2, 0, 2, 1));
}

}  // namespace
}  // namespace pagoda
