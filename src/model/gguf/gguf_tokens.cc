#include "model/gguf/gguf_tokens.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "core/log.h"

namespace pagoda {
namespace {

constexpr int kPlain = 1;
constexpr int kControl = 3;
constexpr int kUserDefined = 4;

// The meaning of a token's spelling. All fill-in-the-middle tokens are control tokens. Three of
// them (pad, repo, file) also end a text, unless a key of the file names another token for that
// use.
enum class Meaning { kEnd, kFillIn, kFillInPad, kFillInRepo, kFillInFile, kShown };

struct Spelling {
  std::string_view text;
  Meaning meaning;
};
constexpr Spelling kSpellings[] = {
    {"<|eot_id|>", Meaning::kEnd},
    {"<|im_end|>", Meaning::kEnd},
    {"<|end|>", Meaning::kEnd},
    {"<|return|>", Meaning::kEnd},
    {"<|call|>", Meaning::kEnd},
    {"<|flush|>", Meaning::kEnd},
    {"<|calls|>", Meaning::kEnd},
    {"<end_of_turn>", Meaning::kEnd},
    {"<|endoftext|>", Meaning::kEnd},
    {"</s>", Meaning::kEnd},
    {"<|eom_id|>", Meaning::kEnd},
    {"<EOT>", Meaning::kEnd},
    {"_<EOT>", Meaning::kEnd},
    {"[EOT]", Meaning::kEnd},
    {"[EOS]", Meaning::kEnd},
    {"<|end_of_text|>", Meaning::kEnd},
    {"<end_of_utterance>", Meaning::kEnd},
    {"<eos>", Meaning::kEnd},
    {"<turn|>", Meaning::kEnd},
    {"<|tool_response>", Meaning::kEnd},
    {"<｜end▁of▁sentence｜>", Meaning::kEnd},
    {"[e~[", Meaning::kEnd},
    {"<|fim_prefix|>", Meaning::kFillIn},
    {"<fim-prefix>", Meaning::kFillIn},
    {"<fim_prefix>", Meaning::kFillIn},
    {"<｜fim▁begin｜>", Meaning::kFillIn},
    {"<PRE>", Meaning::kFillIn},
    {"▁<PRE>", Meaning::kFillIn},
    {"<|code_prefix|>", Meaning::kFillIn},
    {"<|prefix|>", Meaning::kFillIn},
    {"<|fim_suffix|>", Meaning::kFillIn},
    {"<fim-suffix>", Meaning::kFillIn},
    {"<fim_suffix>", Meaning::kFillIn},
    {"<｜fim▁hole｜>", Meaning::kFillIn},
    {"<SUF>", Meaning::kFillIn},
    {"▁<SUF>", Meaning::kFillIn},
    {"<|code_suffix|>", Meaning::kFillIn},
    {"<|suffix|>", Meaning::kFillIn},
    {"<|fim_middle|>", Meaning::kFillIn},
    {"<fim-middle>", Meaning::kFillIn},
    {"<fim_middle>", Meaning::kFillIn},
    {"<｜fim▁end｜>", Meaning::kFillIn},
    {"<MID>", Meaning::kFillIn},
    {"▁<MID>", Meaning::kFillIn},
    {"<|code_middle|>", Meaning::kFillIn},
    {"<|middle|>", Meaning::kFillIn},
    {"<|fim_pad|>", Meaning::kFillInPad},
    {"<fim-pad>", Meaning::kFillInPad},
    {"<fim_pad>", Meaning::kFillInPad},
    {"<PAD>", Meaning::kFillInPad},
    {"[PAD]", Meaning::kFillInPad},
    {"<|fim_repo|>", Meaning::kFillInRepo},
    {"<|repo_name|>", Meaning::kFillInRepo},
    {"<fim-repo>", Meaning::kFillInRepo},
    {"<REPO>", Meaning::kFillInRepo},
    {"<reponame>", Meaning::kFillInRepo},
    {"<|file_sep|>", Meaning::kFillInFile},
    {"<|channel|>", Meaning::kShown},
    {"<|message|>", Meaning::kShown},
    {"<|start|>", Meaning::kShown},
    {"<|constrain|>", Meaning::kShown},
};

// Keys whose tokens end a text. If a key is absent, tokens whose spelling means `stands_in` do so.
struct EndKey {
  std::string_view key;
  std::optional<Meaning> stands_in;
};
constexpr EndKey kEndKeys[] = {
    {"tokenizer.ggml.eos_token_id", std::nullopt},
    {"tokenizer.ggml.eot_token_id", std::nullopt},
    {"tokenizer.ggml.eom_token_id", std::nullopt},
    {"tokenizer.ggml.fim_pad_token_id", Meaning::kFillInPad},
    {"tokenizer.ggml.fim_rep_token_id", Meaning::kFillInRepo},
    {"tokenizer.ggml.fim_sep_token_id", Meaning::kFillInFile},
};

class TokenReader {
 public:
  TokenReader(const GgufFile& file, int vocab_size) : file_(file), vocab_size_(vocab_size) {
    for (const Spelling& each : kSpellings) meanings_.emplace(each.text, each.meaning);
  }

  Result<GgufTokens> read() {
    for (const EndKey& end : kEndKeys) {
      PAGODA_ASSIGN_OR_RETURN(const auto id, read_gguf_token_id(file_, end.key, vocab_size_));
      if (!id) continue;
      add_end(*id);
      if (end.stands_in) named_.push_back(*end.stands_in);
    }
    PAGODA_RETURN_IF_ERROR(read_types());
    for (std::size_t id = 0; id < texts_.size(); ++id) take(static_cast<int>(id));
    make_exceptions();
    return std::move(tokens_);
  }

 private:
  Status read_types() {
    if (!file_.has("tokenizer.ggml.tokens")) return ok_status();
    PAGODA_ASSIGN_OR_RETURN(texts_, file_.strings("tokenizer.ggml.tokens"));
    if (texts_.size() > static_cast<std::size_t>(vocab_size_)) {
      return data_loss("[gguf] key tokenizer.ggml.tokens: expected at most {} tokens, got {}",
                       vocab_size_, texts_.size());
    }
    tokens_.types.assign(texts_.size(), kPlain);
    if (!file_.has("tokenizer.ggml.token_type")) return ok_status();
    PAGODA_ASSIGN_OR_RETURN(const auto types, file_.integers("tokenizer.ggml.token_type"));
    if (types.size() != texts_.size()) {
      return data_loss("[gguf] key tokenizer.ggml.token_type: expected {} types, got {}",
                       texts_.size(), types.size());
    }
    std::transform(types.begin(), types.end(), tokens_.types.begin(),
                   [](std::int64_t type) { return static_cast<int>(type); });
    return ok_status();
  }

  void take(int id) {
    const auto found = meanings_.find(texts_[id]);
    if (found == meanings_.end()) return;
    const Meaning meaning = found->second;
    if (meaning == Meaning::kShown) {
      tokens_.types[id] = kUserDefined;
      return;
    }
    tokens_.types[id] = kControl;
    const bool is_named = std::find(named_.begin(), named_.end(), meaning) != named_.end();
    if (meaning != Meaning::kFillIn && !is_named) add_end(id);
  }

  void add_end(int id) {
    auto& ids = tokens_.end_ids;
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
  }

  // Removes end tokens that do not end a text in this vocabulary. If other tokens end an answer's
  // last part, <|end|> only ends an earlier part. If <|tool_response> ends a turn, </s> is plain
  // text, as in HTML.
  void make_exceptions() {
    const bool has_call = ends("<|call|>") || ends("<|calls|>");
    if (ends("<|return|>") || (has_call && ends("<|flush|>"))) remove_end("<|end|>", kUserDefined);
    if (ends("<|tool_response>")) remove_end("</s>", kPlain);
  }

  std::string_view text_of(int id) const {
    return static_cast<std::size_t>(id) < texts_.size() ? texts_[id] : std::string_view();
  }
  bool ends(std::string_view text) const {
    const auto& ids = tokens_.end_ids;
    return std::any_of(ids.begin(), ids.end(), [&](int id) { return text_of(id) == text; });
  }
  void remove_end(std::string_view text, int type) {
    std::erase_if(tokens_.end_ids, [&](int id) {
      if (text_of(id) != text) return false;
      tokens_.types[id] = type;
      return true;
    });
  }

  const GgufFile& file_;
  const int vocab_size_;
  std::unordered_map<std::string_view, Meaning> meanings_;  // of kSpellings
  std::vector<std::string_view> texts_;
  std::vector<Meaning> named_;  // those that a key of the file names
  GgufTokens tokens_;
};

}  // namespace

Result<std::optional<int>> read_gguf_token_id(const GgufFile& file, std::string_view key,
                                              int vocab_size) {
  if (!file.has(key)) return std::optional<int>();
  PAGODA_ASSIGN_OR_RETURN(const std::int64_t id, file.integer(key));
  if (id >= 0 && id < vocab_size) return std::optional<int>(static_cast<int>(id));
  log_warning("[gguf] key {}: {} is ignored: the vocabulary has {} tokens", key, id, vocab_size);
  return std::optional<int>();
}

Result<GgufTokens> read_gguf_tokens(const GgufFile& file, int vocab_size) {
  return TokenReader(file, vocab_size).read();
}

}  // namespace pagoda
