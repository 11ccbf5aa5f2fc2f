// Text to token ids and back, for Hugging Face checkpoints (tokenizer.json) and GGUF files.
//
// Ids equal those of Hugging Face tokenizers: tokenizer.json is read by the same code, and a GGUF
// vocabulary is rebuilt as the tokenizer that it was converted from:
//   gpt2    byte-level BPE, cut by the expressions that tokenizer.ggml.pre names (Llama 3, Qwen 2);
//           rust/text/src/pre_tokenizer.rs has the table
//   llama   SentencePiece BPE, merges ranked by score, <0xNN> for characters that have no token
//   gemma4  the file's merges over such characters, as some names of tokenizer.ggml.pre ask for too
//
// Decoding follows the checkpoint's decoder with one difference. If a run of byte tokens has both
// complete and broken characters, the complete ones are kept. Hugging Face gives U+FFFD for each
// byte of such a run. A stream cannot, because it has sent the complete characters already.
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
  // Adds BOS and EOS if the checkpoint wants them. Set it to false for rendered chats, because
  // their template prints these tokens.
  bool add_special_tokens = true;
  // Encodes a special token's text, such as "<|im_end|>", as that token; false: as plain text.
  bool parse_special = true;
};

// Tokens around and between two texts that a model reads as one pair.
struct PairParts {
  std::vector<int> before, between, after;
};

class Tokenizer {
 public:
  // Reads tokenizer.json and, if there is one, tokenizer_config.json (bos_token, eos_token) from a
  // folder in Hugging Face's layout. The post-processor adds the tokens around a text, as in
  // transformers 5. kNotFound: there is no tokenizer.json; the message says how to get one.
  static Result<std::shared_ptr<const Tokenizer>> from_folder(const std::filesystem::path& folder);
  static Result<std::shared_ptr<const Tokenizer>> from_gguf(const GgufVocabulary& vocabulary);

  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // Tokenizes a text. kInvalidArgument for bytes that are not UTF-8. It uses up to 260 bytes of
  // memory for each byte of longest_piece(), and 8 for each token.
  Result<std::vector<int>> encode(std::string_view utf8, EncodeOptions options = {}) const;
  // Returns the tokens that the checkpoint puts around and between two texts of a pair.
  Result<PairParts> pair_parts() const;
  // Returns the bytes of the longest piece that encode() tokenises at once. A text for a byte-level
  // tokenizer is cut between words into pieces of 256 KiB; a stretch without a place to cut gives a
  // longer piece. Other texts, and texts for unknown pre-tokenizers, are one piece. Errors are
  // encode()'s.
  Result<std::size_t> longest_piece(std::string_view utf8) const;

  // Decodes ids to a text, which is always valid UTF-8. kInvalidArgument for an id outside [0,
  // vocab_size).
  Result<std::string> decode(std::span<const int> ids, bool skip_special_tokens) const;

  // Returns the token as the vocabulary writes it ("Ġthe", "▁the", "<0x0A>"); empty if the id has
  // no token.
  Result<std::string> id_to_token(int id) const;
  // Returns the bytes that the token adds in the middle of a text (" the"). They may be part of a
  // character.
  Result<std::string> token_bytes(int id) const;
  std::optional<int> token_to_id(std::string_view token) const;

  // Returns the largest id plus one. A model's own vocabulary is often padded beyond it.
  int vocab_size() const { return vocab_size_; }
  std::optional<int> bos_token_id() const { return bos_token_id_; }
  std::optional<int> eos_token_id() const { return eos_token_id_; }
  // Returns the text that chat templates call bos_token; empty if there is none. eos_token()
  // likewise.
  const std::string& bos_token() const { return bos_token_; }
  const std::string& eos_token() const { return eos_token_; }
  // Returns whether a token is a control token, such as BOS or <|im_end|>; false for an id outside
  // the vocabulary.
  bool is_special(int id) const;

 private:
  friend class Detokenizer;
  friend class GrammarCompiler;
  struct Rust;  // the crate's tokenizer; its header is not included here

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
