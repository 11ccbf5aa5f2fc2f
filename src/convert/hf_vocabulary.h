// Converts tokenizer.json's BPE, byte-level or SentencePiece's, to a GGUF file's keys.
//
// For byte-level BPE, GGUF has only the name of the expression that splits a text before merging.
// For SentencePiece it has a flag for added spaces. The name and the flag are found by trial: the
// vocabulary is built in each way. The first one is taken that encodes over a thousand texts
// exactly as tokenizer.json does, with special tokens, BOS and EOS. So a tokenizer that GGUF cannot
// express is refused, and never converted with a loss.
#pragma once

#include <string>

#include "core/status.h"
#include "model/model_config.h"
#include "text/gguf_vocabulary.h"
#include "weights/gguf_writer.h"

namespace pagoda {

// Reads a vocabulary. Ids below the model's `vocab_size` without a token get [PAD...] tokens, as
// converters write them. kNotFound: no tokenizer.json. kUnsupported: a tokenizer that is not BPE,
// or that no way of building reproduces. kDataLoss: contradictory.
Result<GgufVocabulary> read_hf_vocabulary(const std::string& folder, int vocab_size);

// Sets the keys tokenizer.*, with the ids that end a text according to the config. kUnsupported:
// more such ids than GGUF has keys for.
Status set_vocabulary_keys(const GgufVocabulary& vocabulary, const ModelConfig& config,
                           GgufMetadata& metadata);

}  // namespace pagoda
