// tokenizer.json's BPE, byte-level or SentencePiece's, as a GGUF file's keys.
//
// GGUF names the expression that cuts text before byte-level merging instead of holding it, and has
// a flag for how SentencePiece puts spaces. The name and the flag are found by trying: the
// vocabulary is built in each way. The first is taken that cuts some hundred texts exactly as
// tokenizer.json does, special tokens, BOS and EOS among them. So whatever a GGUF vocabulary cannot
// say is refused, never lost.
#pragma once

#include <string>

#include "core/status.h"
#include "model/model_config.h"
#include "text/gguf_vocabulary.h"
#include "weights/gguf_writer.h"

namespace pagoda {

// Reads a vocabulary with [PAD...] tokens up to the model's `vocab_size`, as converters write them.
// kNotFound: no tokenizer.json. kUnsupported: a tokenizer that is no BPE, or that no way of
// building it comes to. kDataLoss: contradictory.
Result<GgufVocabulary> read_hf_vocabulary(const std::string& folder, int vocab_size);

// Sets the keys tokenizer.*, the ids at which the config ends a text among them. kUnsupported: more
// of these than GGUF has keys for.
Status set_vocabulary_keys(const GgufVocabulary& vocabulary, const ModelConfig& config,
                           GgufMetadata& metadata);

}  // namespace pagoda
