// tokenizer.json's SentencePiece BPE (Llama 2, TinyLlama, Mistral: byte_fallback, "▁" for a space)
// as a GGUF vocabulary: pieces, scores and types instead of a list of merges.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "core/status.h"
#include "text/gguf_vocabulary.h"

namespace pagoda {

// Scores, and the types of bytes and of the unknown token, for tokens that are in place. `model` is
// tokenizer.json's.
//
// A GGUF file has a score a piece; whoever reads it may merge any two pieces that make a third, the
// best score first. So the merges have to be all there are, a piece's together. kUnsupported where
// they are not: another reader would merge what this tokenizer does not.
Status set_pieces(const nlohmann::json& model, GgufVocabulary& vocabulary);

// Returns the ways of putting spaces before a text that a GGUF file can say, likeliest first:
// `vocabulary` with each.
std::vector<GgufVocabulary> space_prefix_candidates(const GgufVocabulary& vocabulary);

}  // namespace pagoda
