// StoredWeights: facts about the files of a model's weights.
#pragma once

#include <cstdint>
#include <string>

namespace pagoda {

class Checkpoint;

struct StoredWeights {
  std::int64_t num_bytes = 0;
  bool is_gguf = false;          // false: a folder of safetensors
  std::int64_t modified_ns = 0;  // when the newest file was written, since 1970
  std::int64_t num_parameters = 0;
  std::string format;  // of most parameters: "Q4_1"
  // A SHA-256 in hex digits that tells versions of a model apart; it is not that of a file. It
  // covers a folder's config.json, all tensors' names, formats and shapes, and samples of their
  // bytes.
  std::string digest;
};

// Reads the facts. It takes milliseconds, because at most 256 KiB of the weights are read.
StoredWeights read_stored_weights(const Checkpoint& checkpoint);

}  // namespace pagoda
