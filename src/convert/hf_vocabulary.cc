#include "convert/hf_vocabulary.h"

#include <algorithm>
#include <filesystem>
#include <random>
#include <utility>

#include "convert/gguf_token_types.h"
#include "convert/hf_sentence_piece.h"
#include "core/json.h"
#include "core/text_file.h"
#include "model/hf/json_fields.h"
#include "text/tokenizer.h"

namespace pagoda {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// llama.cpp's names of pre-tokenizers, one for each way of splitting texts. Some tokenizers ignore
// merges for a piece that is a token as a whole. Their names have a list of their own, because few
// texts reveal the difference.
constexpr const char* kMergingNames[] = {
    "gpt-2",       "smollm",  "qwen2",        "dbrx",       "stablelm2",
    "qwen35",      "gpt-4o",  "deepseek-llm", "falcon",     "deepseek-coder",
    "deepseek-v3", "default", "seed-coder",   "exaone-moe", "kimi-k2",
    "tiny_aya",    "jais-2",  "laguna",       "ufakzeka",   "spark2_5",
    "afmoe",       "bloom",   "viking",       "superbpe",   "chameleon"};
constexpr const char* kIgnoringMergesNames[] = {"llama-bpe", "tekken", "minicpm5", "youtu",
                                                "granite-embed-multi-97m"};

// Texts for which the splitting expressions differ: case, digits in a row, marks, contractions,
// punctuation before letters and line ends, spaces of all kinds, scripts.
constexpr const char* kSnippets[] = {
    "a",  "The", "ing",  "word", "Z",    "HTML", "0",     "1",  "12",     "345",    "2026",
    " ",  "  ",  "   ",  "\n",   "\n\n", "\r\n", "\t",    "'s", "'LL",    "'t",     "'",
    "\"", ".",   ",",    "!?",   "...",  "$",    "+",     "<",  "|",      "`",      "~",
    "-",  "_",   "/",    "//",   "(",    ")",    "{",     "}",  "#",      "é",      "e\u0301",
    "ß",  "Ж",   "中文", "日本", "あ",   "한",   "ا",     "ก็",  "\u00a0", "\u3000", "—",
    "…",  "🙂",  "½",    "²",    "٣",    "ǅ",    "\u200d"};
constexpr int kNumProbes = 1600;
constexpr int kSnippetsAProbe = 14;
constexpr int kMaxSpecialProbes = 32;

std::vector<std::string> probe_texts(const GgufVocabulary& vocabulary) {
  std::vector<std::string> texts = {""};
  std::mt19937 random(1);
  for (int i = 0; i < kNumProbes; ++i) {
    std::string& text = texts.emplace_back();
    for (int j = 0; j < kSnippetsAProbe; ++j) text += kSnippets[random() % std::size(kSnippets)];
  }
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const int type = vocabulary.token_types[id];
    if (type != kControlToken && type != kUserDefinedToken && type != kUnknownToken) continue;
    texts.push_back("a " + vocabulary.tokens[id] + " b" + vocabulary.tokens[id] + "c");
    if (texts.size() > kNumProbes + kMaxSpecialProbes) break;
  }
  return texts;
}

using Encodings = std::vector<std::vector<int>>;

Result<Encodings> encode_all(const Tokenizer& tokenizer, const std::vector<std::string>& texts) {
  Encodings encodings;
  for (const std::string& text : texts) {
    PAGODA_ASSIGN_OR_RETURN(std::vector<int> ids, tokenizer.encode(text));
    encodings.push_back(std::move(ids));
  }
  return encodings;
}

Status place_token(const std::string& token, const json& id, int type, GgufVocabulary& vocabulary) {
  const auto size = static_cast<std::int64_t>(vocabulary.tokens.size());
  if (!id.is_number_integer() || id.get<std::int64_t>() < 0 || id.get<std::int64_t>() >= size) {
    return data_loss("[quantize] tokenizer.json: expected token ids of 0 to {}, got {}", size - 1,
                     json_text(id));
  }
  vocabulary.tokens[id.get<std::size_t>()] = token;
  vocabulary.token_types[id.get<std::size_t>()] = type;
  return ok_status();
}

Status read_tokens(const json& tokenizer, const json& model, int vocab_size,
                   GgufVocabulary& vocabulary) {
  vocabulary.token_types.assign(vocab_size, kUnusedToken);
  for (int id = 0; id < vocab_size; ++id) vocabulary.tokens.push_back(fmt::format("[PAD{}]", id));
  const auto vocab = model.find("vocab");
  if (vocab == model.end() || !vocab->is_object()) {
    return data_loss("[quantize] tokenizer.json: expected a vocab, got none");
  }
  for (const auto& [token, id] : vocab->items()) {
    PAGODA_RETURN_IF_ERROR(place_token(token, id, kNormalToken, vocabulary));
  }
  for (const json& added : tokenizer.value("added_tokens", json::array())) {
    if (!added.is_object() || !added.contains("content") || !added["content"].is_string()) {
      return data_loss("[quantize] tokenizer.json: expected added tokens with a content");
    }
    const bool is_special = added.value("special", json(false)) == true;
    PAGODA_RETURN_IF_ERROR(place_token(added["content"], added.value("id", json()),
                                       is_special ? kControlToken : kUserDefinedToken, vocabulary));
  }
  return ok_status();
}

// Reads merges: "left right", or ["left", "right"] since transformers 4.45.
Status read_merges(const json& model, GgufVocabulary& vocabulary) {
  for (const json& merge : model.value("merges", json::array())) {
    const bool is_pair =
        merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string();
    std::string text;
    if (is_pair) text = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
    if (merge.is_string()) text = merge.get<std::string>();
    if (std::count(text.begin(), text.end(), ' ') != 1) {
      return data_loss("[quantize] tokenizer.json: expected merges of two tokens, got {}",
                       json_text(merge).substr(0, 80));
    }
    vocabulary.merges.push_back(std::move(text));
  }
  return ok_status();
}

// Reads chat_template.jinja, else the template in tokenizer_config.json. If there are several, it
// reads the one named default.
Result<std::optional<std::string>> read_chat_template(const fs::path& folder) {
  std::error_code error;
  if (fs::exists(folder / "chat_template.jinja", error)) {
    PAGODA_ASSIGN_OR_RETURN(std::string text, read_text_file(folder / "chat_template.jinja"));
    return std::optional(std::move(text));
  }
  if (!fs::exists(folder / "tokenizer_config.json", error)) return std::optional<std::string>();
  PAGODA_ASSIGN_OR_RETURN(const std::string text, read_text_file(folder / "tokenizer_config.json"));
  PAGODA_ASSIGN_OR_RETURN(const json config, parse_json_object(text, "tokenizer_config.json"));
  const json& entry = config.contains("chat_template") ? config["chat_template"] : json();
  if (entry.is_string()) return std::optional(entry.get<std::string>());
  if (!entry.is_array()) return std::optional<std::string>();
  for (const json& named : entry) {
    if (!named.is_object() || named.value("name", json()) != "default") continue;
    if (named.contains("template") && named["template"].is_string())
      return std::optional(named["template"].get<std::string>());
  }
  return std::optional<std::string>();
}

// Finds the tokens that tokenizer.json adds around a text, by encoding one.
Status read_ends(const Tokenizer& tokenizer, GgufVocabulary& vocabulary) {
  vocabulary.bos_token_id = tokenizer.bos_token_id();
  vocabulary.eos_token_id = tokenizer.eos_token_id();
  PAGODA_ASSIGN_OR_RETURN(const std::vector<int> bare,
                          tokenizer.encode("a", {.add_special_tokens = false}));
  PAGODA_ASSIGN_OR_RETURN(const std::vector<int> whole, tokenizer.encode("a"));
  const bool is_longer = whole.size() > bare.size();
  vocabulary.add_bos_token = is_longer && whole.front() == vocabulary.bos_token_id;
  vocabulary.add_eos_token = is_longer && whole.back() == vocabulary.eos_token_id;
  return ok_status();
}

// Returns the vocabulary under the name of each known pre-tokenizer.
std::vector<GgufVocabulary> pre_tokenizer_candidates(const GgufVocabulary& vocabulary,
                                                     bool ignores_merges) {
  std::vector<const char*> names(std::begin(kMergingNames), std::end(kMergingNames));
  if (ignores_merges)
    names.assign(std::begin(kIgnoringMergesNames), std::end(kIgnoringMergesNames));
  std::vector<GgufVocabulary> candidates(names.size(), vocabulary);
  for (std::size_t i = 0; i < names.size(); ++i) candidates[i].pre = names[i];
  return candidates;
}

// Returns the first candidate that encodes texts as the tokenizer does.
Result<GgufVocabulary> choose(const fs::path& file, const Tokenizer& tokenizer,
                              std::vector<GgufVocabulary> candidates) {
  const std::vector<std::string> texts = probe_texts(candidates.front());
  PAGODA_ASSIGN_OR_RETURN(const Encodings wanted, encode_all(tokenizer, texts));
  for (GgufVocabulary& candidate : candidates) {
    PAGODA_ASSIGN_OR_RETURN(const std::shared_ptr<const Tokenizer> rebuilt,
                            Tokenizer::from_gguf(candidate));
    const Result<Encodings> encodings = encode_all(*rebuilt, texts);
    if (encodings.ok() && *encodings == wanted) return std::move(candidate);
  }
  return unsupported(
      "[quantize] {}: no GGUF vocabulary cuts text as this tokenizer does; those that llama.cpp "
      "has "
      "a name for are known",
      file.string());
}

// Chooses a vocabulary of pieces. It prefers scores, which every reader supports, to merges as
// Gemma 4 has them.
Result<GgufVocabulary> choose_pieces(const fs::path& file, const Tokenizer& tokenizer,
                                     const json& model, GgufVocabulary vocabulary) {
  mark_pieces(model, vocabulary);
  GgufVocabulary of_merges = vocabulary;
  of_merges.model = of_merges.pre = "gemma4";
  const Status scores = set_scores(vocabulary);
  std::vector<GgufVocabulary> candidates;
  if (scores.ok()) candidates = space_prefix_candidates(vocabulary);
  candidates.push_back(std::move(of_merges));
  Result<GgufVocabulary> chosen = choose(file, tokenizer, std::move(candidates));
  if (!chosen.ok() && !scores.ok()) return scores;
  return chosen;
}

// Sets the keys that depend on the kind of vocabulary: scores or merges.
void set_kind_keys(const GgufVocabulary& vocabulary, const std::string& prefix,
                   GgufMetadata& metadata) {
  if (vocabulary.model == "llama") {
    metadata.set(prefix + "scores", vocabulary.scores)
        .set(prefix + "add_space_prefix", vocabulary.add_space_prefix.value_or(true));
  } else {
    metadata.set(prefix + "merges", vocabulary.merges);
  }
  if (!vocabulary.metaspace.empty())
    metadata.set("pagoda.tokenizer.metaspace", vocabulary.metaspace);
  if (vocabulary.unknown_token_id) {
    metadata.set(prefix + "unknown_token_id",
                 static_cast<std::uint32_t>(*vocabulary.unknown_token_id));
  }
}

}  // namespace

Result<GgufVocabulary> read_hf_vocabulary(const std::string& folder, int vocab_size) {
  const fs::path file = fs::path(folder) / "tokenizer.json";
  if (std::error_code error; !fs::exists(file, error))
    return Tokenizer::from_folder(folder).status();  // its message says where to get one
  PAGODA_ASSIGN_OR_RETURN(const std::string text, read_text_file(file));
  PAGODA_ASSIGN_OR_RETURN(const json tokenizer_json, parse_json_object(text, file.string()));
  const json model = tokenizer_json.value("model", json::object());
  if (!model.is_object() || !model.contains("merges") || !model["merges"].is_array()) {
    return unsupported("[quantize] {}: only BPE becomes a GGUF vocabulary", file.string());
  }
  const bool is_sentence_piece = model.value("byte_fallback", json(false)) == true;
  GgufVocabulary vocabulary{.model = is_sentence_piece ? "llama" : "gpt2"};
  PAGODA_RETURN_IF_ERROR(read_tokens(tokenizer_json, model, vocab_size, vocabulary));
  PAGODA_RETURN_IF_ERROR(read_merges(model, vocabulary));
  PAGODA_ASSIGN_OR_RETURN(vocabulary.chat_template, read_chat_template(folder));
  PAGODA_ASSIGN_OR_RETURN(const std::shared_ptr<const Tokenizer> tokenizer,
                          Tokenizer::from_folder(folder));
  PAGODA_RETURN_IF_ERROR(read_ends(*tokenizer, vocabulary));
  if (is_sentence_piece) {
    return choose_pieces(file, *tokenizer, model, std::move(vocabulary));
  }
  const bool ignores_merges = model.value("ignore_merges", json(false)) == true;
  return choose(file, *tokenizer, pre_tokenizer_candidates(vocabulary, ignores_merges));
}

Status set_vocabulary_keys(const GgufVocabulary& vocabulary, const ModelConfig& config,
                           GgufMetadata& metadata) {
  // The tokenizer's own end token comes first: chat templates print it, and it ends a text too.
  std::vector<int> ends = config.eos_token_ids;
  if (const std::optional<int> own = vocabulary.eos_token_id) {
    std::erase(ends, *own);
    ends.insert(ends.begin(), *own);
  }
  constexpr const char* kEndKeys[] = {"eos_token_id", "eot_token_id", "eom_token_id"};
  if (ends.size() > std::size(kEndKeys)) {
    return unsupported("[quantize] eos_token_id: GGUF has keys for {} ends of a text, got {}",
                       std::size(kEndKeys), ends.size());
  }
  const std::string prefix = "tokenizer.ggml.";
  if (!vocabulary.model_name.empty()) metadata.set("general.name", vocabulary.model_name);
  metadata.set(prefix + "model", vocabulary.model)
      .set(prefix + "pre", vocabulary.pre)
      .set(prefix + "tokens", vocabulary.tokens)
      .set(prefix + "token_type", vocabulary.token_types);
  set_kind_keys(vocabulary, prefix, metadata);
  for (std::size_t i = 0; i < ends.size(); ++i) {
    metadata.set(prefix + kEndKeys[i], static_cast<std::uint32_t>(ends[i]));
  }
  const std::optional<int> bos =
      vocabulary.bos_token_id ? vocabulary.bos_token_id : config.bos_token_id;
  if (bos) metadata.set(prefix + "bos_token_id", static_cast<std::uint32_t>(*bos));
  metadata.set(prefix + "add_bos_token", vocabulary.add_bos_token.value_or(false));
  metadata.set(prefix + "add_eos_token", vocabulary.add_eos_token.value_or(false));
  if (vocabulary.chat_template) metadata.set("tokenizer.chat_template", *vocabulary.chat_template);
  return ok_status();
}

}  // namespace pagoda
