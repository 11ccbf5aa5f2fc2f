// Text to token ids and back, for Hugging Face checkpoints (tokenizer.json) and GGUF files.
//
// Ids equal those of Hugging Face tokenizers: tokenizer.json is read by the same code, and a GGUF
// vocabulary is rebuilt as the tokenizer that it was converted from:
//   gpt2    byte-level BPE, cut by the expressions that tokenizer.ggml.pre names (Llama 3, Qwen 2);
//           rust/text/src/pre_tokenizer.rs has the table
//   llama   SentencePiece BPE, merges ranked by score, <0xNN> for characters that have no token
//   gemma4  the file's merges over such characters, as some names of tokenizer.ggml.pre ask for too
//
// Decoding follows the checkpoint's decoder with one departure: where byte tokens hold both whole
// characters and broken ones, the whole ones are kept. Hugging Face gives U+FFFD for each byte of
// such a run; a stream can't, because it has sent the whole ones already.
//
// A Tokenizer is immutable and thread-safe. Errors are a Status that starts with [tokenizer] or the
// file's name.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "text/gguf_vocabulary.h"

namespace pagoda {

class Detokenizer;
struct DetokenizerOptions;

struct EncodeOptions {
  // Adds BOS and EOS where the checkpoint wants them. Off for rendered chats: their template prints
  // them.
  bool add_special_tokens = true;
  // Takes "<|im_end|>" in the text as that token; off: as the tokens of its characters.
  bool parse_special = true;
};

// Tokens that are put around two texts which are read as one pair.
struct PairParts {
  std::vector<int> before, between, after;
};

class Tokenizer {
 public:
  // Reads tokenizer.json and, where it is there, tokenizer_config.json (bos_token, eos_token) of a
  // folder as Hugging Face saves it. The post-processor adds the tokens around a text, as in
  // transformers 5. kNotFound: no tokenizer.json, and where to get one.
  static Result<std::shared_ptr<const Tokenizer>> from_folder(const std::filesystem::path& folder);
  static Result<std::shared_ptr<const Tokenizer>> from_gguf(const GgufVocabulary& vocabulary);

  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // Tokenizes a text. kInvalidArgument for bytes that are not UTF-8. It takes up to 260 bytes of
  // memory for each of longest_piece(), and 8 for each token.
  Result<std::vector<int>> encode(std::string_view utf8, EncodeOptions options = {}) const;
  // Returns what the checkpoint wants around two texts that belong together.
  Result<PairParts> pair_parts() const;
  // Returns the bytes of the longest piece that encode() tokenises at once. Byte-level texts are
  // cut between words, and are in pieces of 256 KiB but for stretches without any; other texts, and
  // those of pre-tokenizers that are not known, are one piece. Errors are encode()'s.
  Result<std::size_t> longest_piece(std::string_view utf8) const;

  // Decodes ids to a text that is valid UTF-8 whatever they are. kInvalidArgument for an id outside
  // of [0, vocab_size).
  Result<std::string> decode(std::span<const int> ids, bool skip_special_tokens) const;

  // Returns the token as the vocabulary writes it ("Ġthe", "▁the", "<0x0A>"); empty for a hole in
  // the vocabulary.
  Result<std::string> id_to_token(int id) const;
  // Returns the bytes that the token adds in the middle of a text (" the"); not always whole
  // characters.
  Result<std::string> token_bytes(int id) const;
  std::optional<int> token_to_id(std::string_view token) const;

  // Returns the largest id plus one. A model's own vocabulary is often padded beyond it.
  int vocab_size() const { return vocab_size_; }
  std::optional<int> bos_token_id() const { return bos_token_id_; }
  std::optional<int> eos_token_id() const { return eos_token_id_; }
  // Returns the text that chat templates call bos_token, and below eos_token; empty where there is
  // none.
  const std::string& bos_token() const { return bos_token_; }
  const std::string& eos_token() const { return eos_token_; }
  // Returns whether a token is a control token, such as BOS and <|im_end|>; false for an id outside
  // of the vocabulary.
  bool is_special(int id) const;

 private:
  friend class Detokenizer;
  friend class GrammarCompiler;
  struct Rust;  // the crate's tokenizer; its header stays out of this one

  explicit Tokenizer(std::unique_ptr<Rust> rust);
  Status check_id(int id) const;
  void set_bos(std::optional<int> id);
  void set_eos(std::optional<int> id);

  std::unique_ptr<Rust> rust_;
  int vocab_size_ = 0;
  std::optional<int> bos_token_id_;
  std::optional<int> eos_token_id_;
  std::string bos_token_;
  std::string eos_token_;
};

}  // namespace pagoda
