// tokenizer.json's SentencePiece BPE (Llama 2, TinyLlama, Mistral: byte_fallback, "▁" for a space)
// as a GGUF vocabulary: pieces, scores and types instead of a list of merges, or, as Gemma 4 has
// it, the merges themselves.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "core/status.h"
#include "text/gguf_vocabulary.h"

namespace pagoda {

// Sets the types of bytes and of the unknown token, for tokens that are in place. `model` is
// tokenizer.json's.
void mark_pieces(const nlohmann::json& model, GgufVocabulary& vocabulary);

// Puts a score a piece in the place of the merges; a reader of scores may merge any two pieces that
// make a third, the best score first. So the merges have to be all there are, a piece's together.
// kUnsupported where they are not: another reader would merge what this tokenizer does not.
Status set_scores(GgufVocabulary& vocabulary);

// Returns `vocabulary` with each way of putting spaces before a text, and of taking those behind
// special tokens. The ways are those that a GGUF file with scores can say, likeliest first.
std::vector<GgufVocabulary> space_prefix_candidates(const GgufVocabulary& vocabulary);

}  // namespace pagoda
