// A checkpoint as a GGUF file would hold it: keys and tensors under GGUF's names, in GGUF's order
// of rows. `pagoda quantize` writes it.
#pragma once

#include <cstdint>
#include <vector>

#include "core/status.h"
#include "quant/host_tensor.h"
#include "weights/checkpoint.h"
#include "weights/gguf_writer.h"

namespace pagoda {

struct GgufModelTensor {
  HostTensor tensor;  // under GGUF's name
  // Not 0: q or k of the llama architecture, whose heads of this many rows GGUF has with their two
  // halves interleaved, so that rotations pair neighbours. Row 2 i + j of a head is the
  // checkpoint's row i + j * head_dim / 2.
  int interleaved_head_dim = 0;
  // A value becomes (value + offset) * factor: GGUF has Gemma's norms as 1 + w, and queries take up
  // a scale of scores that it has no key for.
  float offset = 0;
  float factor = 1;
};

struct GgufModel {
  GgufMetadata metadata;  // without general.file_type and general.quantization_version
  std::uint64_t alignment = 32;
  std::vector<GgufModelTensor> tensors;
};

// Reads a checkpoint as GGUF has it. From a GGUF file: all keys but those of a split set; all
// tensors. kUnsupported: a tensor of a type that nothing here reads.
//
// From a Hugging Face folder: the keys of the architecture, of sampling and of the tokenizer, and
// the tensors that the model reads. kUnsupported, as GGUF cannot say it: a value that its family
// has no key for, a tokenizer that is no BPE of a known kind, a tensor without a name there. Other
// errors as in read_model_config.
Result<GgufModel> read_gguf_model(const Checkpoint& checkpoint);

}  // namespace pagoda
