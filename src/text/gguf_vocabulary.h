// A tokenizer as a GGUF file holds it, under the keys tokenizer.ggml.*. The file's reader fills
// this; nothing here knows the format. No length or id needs to be right: Tokenizer::from_gguf
// checks them all.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace pagoda {

struct GgufVocabulary {
  std::string model_name;  // general.name; special tokens of Phi-3 take the white space behind them
  // tokenizer.ggml.model: "gpt2" (byte-level BPE), "llama" (SentencePiece BPE) or "gemma4" (BPE
  // over characters, with ▁ for a space).
  std::string model;
  std::string pre;  // tokenizer.ggml.pre, for gpt2; empty where the file has none

  std::vector<std::string> tokens;  // [vocab]
  std::vector<float> scores;        // [vocab] for llama, not read for the others
  std::vector<int> token_types;     // [vocab] or empty: all normal
  std::vector<std::string> merges;  // for gpt2 and gemma4: "left right", best first

  std::optional<int> bos_token_id;
  std::optional<int> eos_token_id;
  std::optional<int> unknown_token_id;

  // Absent keys take the format's defaults. Texts of llama start with BOS and a space, those of
  // gpt2 with neither. But the pre-tokenizers of Llama 3, Tekken and Chameleon start with BOS, and
  // those of Gemma 4 whatever the key says. No text ends with EOS.
  std::optional<bool> add_bos_token;
  std::optional<bool> add_eos_token;
  std::optional<bool> add_space_prefix;  // llama only
  // pagoda.tokenizer.metaspace, llama only: "first" or "always", Hugging Face's ways of putting
  // that space, which the format has no key for; empty: the format's own, behind every special
  // token too and before a space that is there.
  std::string metaspace;

  std::optional<std::string> chat_template;  // tokenizer.chat_template
};

}  // namespace pagoda
