// Converts tokenizer.json's SentencePiece BPE (Llama 2, TinyLlama, Mistral: byte_fallback, "▁" for
// a space) to a GGUF vocabulary. This has pieces, scores and types instead of a list of merges. For
// Gemma 4 it has the merges themselves.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "core/status.h"
#include "text/gguf_vocabulary.h"

namespace pagoda {

// Sets the types of byte tokens and of the unknown token, in a vocabulary that has its tokens.
// `model` is the object of that name in tokenizer.json.
void mark_pieces(const nlohmann::json& model, GgufVocabulary& vocabulary);

// Replaces the merges by a score for each piece. A reader of scores may merge any two pieces that
// make a third, the best score first. So the merges must have all such pairs, and those of one
// piece must be adjacent. Else kUnsupported: other readers would make merges that this tokenizer
// does not.
Status set_scores(GgufVocabulary& vocabulary);

// Returns copies of `vocabulary`, one for each way to add spaces before a text and to remove those
// after special tokens. They are the ways that a GGUF file with scores can express, likeliest
// first.
std::vector<GgufVocabulary> space_prefix_candidates(const GgufVocabulary& vocabulary);

}  // namespace pagoda
