#include "text/tokenizer.h"

#include <cmath>

#include "core/json.h"
#include "core/text_file.h"
#include "text/rust_bridge.h"

namespace pagoda {
namespace {

constexpr std::string_view kTokenizerContext = "[tokenizer] ";

// Returns a special token, which tokenizer_config.json stores as a string or as an object with a
// "content".
std::string special_token(const nlohmann::json& config, const char* name) {
  const auto entry = config.find(name);
  if (entry == config.end()) return {};
  if (entry->is_string()) return entry->get<std::string>();
  if (entry->is_object() && entry->contains("content") && (*entry)["content"].is_string()) {
    return (*entry)["content"].get<std::string>();
  }
  return {};
}

Status check_id_key(const GgufVocabulary& vocabulary, const char* key, std::optional<int> id) {
  if (!id || (*id >= 0 && static_cast<size_t>(*id) < vocabulary.tokens.size())) return ok_status();
  return data_loss("[tokenizer] tokenizer.ggml.{}: expected an id below {}, got {}", key,
                   vocabulary.tokens.size(), *id);
}

Status check_vocabulary(const GgufVocabulary& vocabulary) {
  const size_t num_tokens = vocabulary.tokens.size();
  if (vocabulary.model != "gpt2" && vocabulary.model != "llama" && vocabulary.model != "gemma4") {
    return unsupported("[tokenizer] tokenizer.ggml.model: expected gpt2, llama or gemma4, got '{}'",
                       vocabulary.model);
  }
  if (num_tokens == 0)
    return data_loss("[tokenizer] tokenizer.ggml.tokens: expected tokens, got none");
  if (!vocabulary.token_types.empty() && vocabulary.token_types.size() != num_tokens) {
    return data_loss("[tokenizer] tokenizer.ggml.token_type: expected {} entries, got {}",
                     num_tokens, vocabulary.token_types.size());
  }
  if (vocabulary.model == "llama" && vocabulary.scores.size() != num_tokens) {
    return data_loss("[tokenizer] tokenizer.ggml.scores: expected {} entries, got {}", num_tokens,
                     vocabulary.scores.size());
  }
  PAGODA_RETURN_IF_ERROR(check_id_key(vocabulary, "bos_token_id", vocabulary.bos_token_id));
  PAGODA_RETURN_IF_ERROR(check_id_key(vocabulary, "eos_token_id", vocabulary.eos_token_id));
  return check_id_key(vocabulary, "unknown_token_id", vocabulary.unknown_token_id);
}

// Returns an error with the command that makes a tokenizer.json from the files in the folder.
Status missing_file(const std::filesystem::path& folder) {
  std::error_code error;
  for (const char* other : {"tokenizer.model", "vocab.json"}) {
    if (!std::filesystem::exists(folder / other, error)) continue;
    return not_found(
        "[tokenizer] {0}: expected tokenizer.json, got {1} alone; Python's transformers makes one "
        "of it: AutoTokenizer.from_pretrained(\"{0}\").save_pretrained(\"{0}\")",
        folder.string(), other);
  }
  if (std::filesystem::exists(folder / "tekken.json", error)) {
    return not_found(
        "[tokenizer] {0}: expected tokenizer.json, got Mistral's tekken.json alone; Python's "
        "transformers, with mistral-common beside it, makes one of it: "
        "transformers.integrations.mistral.convert_tekken_tokenizer(\"{0}/tekken.json\")"
        ".save_pretrained(\"{0}\")",
        folder.string());
  }
  return not_found(
      "[tokenizer] {}: expected tokenizer.json, got none; it is among the files of the model that "
      "this one was made from. `pagoda run --prompt-ids` needs none",
      folder.string());
}

// Returns whether special tokens absorb the white space after them, like Phi-3's. The format has no
// key for it. As in llama.cpp the model's name decides; here the spelling "Phi 3" counts too.
bool strips_behind_special(std::string_view model_name) {
  std::string name;
  for (const char c : model_name) {
    if (c == ' ' || c == '-' || c == '_') continue;
    name += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return name.find("phi3") != std::string::npos;
}

// Returns the id to put at an end of a text; -1: none.
int around_text(bool is_wanted, std::optional<int> id) {
  return is_wanted ? id.value_or(-1) : -1;
}

}  // namespace

Tokenizer::Tokenizer(std::unique_ptr<Rust> rust)
    : rust_(std::move(rust)), vocab_size_(static_cast<int>(rust_->tokenizer->vocab_size())) {}

Tokenizer::~Tokenizer() = default;

Result<std::shared_ptr<const Tokenizer>> Tokenizer::from_folder(
    const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "tokenizer.json";
  if (std::error_code error; !std::filesystem::exists(file, error)) return missing_file(folder);
  PAGODA_ASSIGN_OR_RETURN(const std::string json, read_text_file(file));
  auto rust = call_rust(StatusCode::kDataLoss, file.string() + ": ", [&] {
    return std::make_unique<Rust>(Rust{rust_text::tokenizer_from_json(rust_bytes(json))});
  });
  if (!rust.ok()) return rust.status();
  std::shared_ptr<Tokenizer> tokenizer(new Tokenizer(*std::move(rust)));

  const std::filesystem::path config_file = folder / "tokenizer_config.json";
  if (std::error_code error; !std::filesystem::exists(config_file, error)) {
    return std::shared_ptr<const Tokenizer>(std::move(tokenizer));
  }
  PAGODA_ASSIGN_OR_RETURN(const std::string config_text, read_text_file(config_file));
  PAGODA_ASSIGN_OR_RETURN(const auto config, parse_json_file(config_text, config_file.string()));
  tokenizer->set_bos(tokenizer->token_to_id(special_token(config, "bos_token")));
  tokenizer->set_eos(tokenizer->token_to_id(special_token(config, "eos_token")));
  return std::shared_ptr<const Tokenizer>(std::move(tokenizer));
}

Result<std::shared_ptr<const Tokenizer>> Tokenizer::from_gguf(const GgufVocabulary& vocabulary) {
  PAGODA_RETURN_IF_ERROR(check_vocabulary(vocabulary));
  const bool is_llama = vocabulary.model == "llama";
  const std::string_view pre(vocabulary.model == "gemma4" ? vocabulary.model : vocabulary.pre);
  bool adds_bos = vocabulary.add_bos_token.value_or(is_llama);
  if (!is_llama) {
    auto facts = call_rust(StatusCode::kInternal, kTokenizerContext,
                           [&] { return rust_text::pre_tokenizer_facts(rust_bytes(pre)); });
    if (!facts.ok()) return facts.status();
    if (!facts->is_known) {
      return unsupported(
          "[tokenizer] tokenizer.ggml.pre: expected a pre-tokenizer that is known, got '{}'",
          vocabulary.pre);
    }
    adds_bos = facts->always_adds_bos || vocabulary.add_bos_token.value_or(facts->adds_bos);
  }
  const rust_text::GgufVocabularyView view = {
      .is_sentence_piece = is_llama,
      .pre = rust_bytes(pre),
      .tokens = vocabulary.tokens,
      .scores = {vocabulary.scores.data(), vocabulary.scores.size()},
      .token_types = {vocabulary.token_types.data(), vocabulary.token_types.size()},
      .merges = vocabulary.merges,
      .bos_token_id = around_text(adds_bos, vocabulary.bos_token_id),
      .eos_token_id =
          around_text(vocabulary.add_eos_token.value_or(false), vocabulary.eos_token_id),
      .unk_token_id = vocabulary.unknown_token_id.value_or(-1),
      .add_space_prefix = vocabulary.add_space_prefix.value_or(true),
      .metaspace = rust_bytes(vocabulary.metaspace),
      .strips_behind_special = strips_behind_special(vocabulary.model_name),
  };
  auto rust = call_rust(StatusCode::kDataLoss, "[tokenizer] tokenizer.ggml: ", [&] {
    return std::make_unique<Rust>(Rust{rust_text::tokenizer_from_gguf(view)});
  });
  if (!rust.ok()) return rust.status();
  std::shared_ptr<Tokenizer> tokenizer(new Tokenizer(*std::move(rust)));
  tokenizer->set_bos(vocabulary.bos_token_id);
  tokenizer->set_eos(vocabulary.eos_token_id);
  return std::shared_ptr<const Tokenizer>(std::move(tokenizer));
}

void Tokenizer::set_bos(std::optional<int> id) {
  bos_token_id_ = id;
  if (id) bos_token_ = std::string(rust_->tokenizer->id_to_token(*id));
}

void Tokenizer::set_eos(std::optional<int> id) {
  eos_token_id_ = id;
  if (id) eos_token_ = std::string(rust_->tokenizer->id_to_token(*id));
}

Result<std::vector<int>> Tokenizer::encode(std::string_view utf8, EncodeOptions options) const {
  return call_rust(StatusCode::kInvalidArgument, kTokenizerContext, [&] {
    const auto ids = rust_->tokenizer->encode(rust_bytes(utf8), options.add_special_tokens,
                                              options.parse_special);
    return std::vector<int>(ids.begin(), ids.end());
  });
}

Result<PairParts> Tokenizer::pair_parts() const {
  return call_rust(StatusCode::kInternal, kTokenizerContext, [&] {
    const auto parts = rust_->tokenizer->pair_parts();
    return PairParts{.before = {parts.before.begin(), parts.before.end()},
                     .between = {parts.between.begin(), parts.between.end()},
                     .after = {parts.after.begin(), parts.after.end()}};
  });
}

Result<std::size_t> Tokenizer::longest_piece(std::string_view utf8) const {
  return call_rust(StatusCode::kInvalidArgument, kTokenizerContext,
                   [&] { return rust_->tokenizer->longest_piece(rust_bytes(utf8)); });
}

Status Tokenizer::check_id(int id) const {
  if (id >= 0 && id < vocab_size_) return ok_status();
  return invalid_argument("[tokenizer] token id: expected one below {}, got {}", vocab_size_, id);
}

Result<std::string> Tokenizer::decode(std::span<const int> ids, bool skip_special_tokens) const {
  for (const int id : ids) PAGODA_RETURN_IF_ERROR(check_id(id));
  return call_rust(StatusCode::kInternal, kTokenizerContext, [&] {
    return std::string(rust_->tokenizer->decode({ids.data(), ids.size()}, skip_special_tokens));
  });
}

Result<std::string> Tokenizer::id_to_token(int id) const {
  PAGODA_RETURN_IF_ERROR(check_id(id));
  return call_rust(StatusCode::kInternal, kTokenizerContext,
                   [&] { return std::string(rust_->tokenizer->id_to_token(id)); });
}

Result<std::string> Tokenizer::token_bytes(int id) const {
  PAGODA_RETURN_IF_ERROR(check_id(id));
  return call_rust(StatusCode::kInternal, kTokenizerContext, [&] {
    const auto bytes = rust_->tokenizer->token_bytes(id);
    return std::string(bytes.begin(), bytes.end());
  });
}

std::optional<int> Tokenizer::token_to_id(std::string_view token) const {
  const int id = rust_->tokenizer->token_to_id(rust_bytes(token));
  if (id < 0) return std::nullopt;
  return id;
}

bool Tokenizer::is_special(int id) const {
  return rust_->tokenizer->is_special(id);
}

}  // namespace pagoda
