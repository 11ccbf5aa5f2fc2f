// A tokenizer as a GGUF file stores it, under the keys tokenizer.ggml.*. The reader of the file
// fills this struct; nothing here knows the format. Lengths and ids may be wrong:
// Tokenizer::from_gguf checks them all.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace pagoda {

struct GgufVocabulary {
  // general.name. It identifies Phi-3, whose special tokens absorb the white space after them.
  std::string model_name;
  // tokenizer.ggml.model: "gpt2" (byte-level BPE), "llama" (SentencePiece BPE) or "gemma4" (BPE
  // over characters, with ▁ for a space).
  std::string model;
  std::string pre;  // tokenizer.ggml.pre, for gpt2; empty if the file has none

  std::vector<std::string> tokens;  // [vocab]
  std::vector<float> scores;        // [vocab] for llama, not read for other models
  std::vector<int> token_types;     // [vocab] or empty: all normal
  std::vector<std::string> merges;  // for gpt2 and gemma4: "left right", best first

  std::optional<int> bos_token_id;
  std::optional<int> eos_token_id;
  std::optional<int> unknown_token_id;

  // Absent keys have the format's defaults. The model llama adds BOS and a leading space, gpt2 adds
  // neither. The pre-tokenizers of Llama 3, Tekken and Chameleon add BOS by default; those of Gemma
  // 4 add it whatever the key says. EOS is not added by default.
  std::optional<bool> add_bos_token;
  std::optional<bool> add_eos_token;
  std::optional<bool> add_space_prefix;  // llama only
  // pagoda.tokenizer.metaspace, llama only: "first" or "always", Hugging Face's two ways to add the
  // leading space, for which the format has no key. Empty: the format's own way, which adds a space
  // after every special token too, even if the text has one already.
  std::string metaspace;

  std::optional<std::string> chat_template;  // tokenizer.chat_template
};

}  // namespace pagoda
