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
  // The matrices, all of one shape, whose rows are those of the tensor [experts, rows, cols]: one of
  // each expert, or its gate and its up part; empty: its bytes are the tensor's own.
  std::vector<HostTensor> parts = {};
  // Not 0: a tensor of queries or keys with heads of this many rows. In GGUF the two halves of each
  // head are interleaved, so that neighbouring rows rotate together. Row 2 i + j of a head is the
  // checkpoint's row i + j * head_dim / 2.
  int interleaved_head_dim = 0;
  // A value becomes (value + offset) * factor. GGUF has Gemma's norms as 1 + w. A scale of scores
  // without a key is multiplied into the weights of queries.
  float offset = 0;
  float factor = 1;
};

struct GgufModel {
  GgufMetadata metadata;  // without general.file_type and general.quantization_version
  std::uint64_t alignment = 32;
  std::vector<GgufModelTensor> tensors;
};

// Reads a checkpoint as GGUF has it. From a GGUF file: all keys except those of a split set, and
// all tensors. kUnsupported: a tensor of a type that nothing here reads.
//
// From a Hugging Face folder: the keys of the architecture, of sampling and of the tokenizer, and
// the tensors that the model reads. kUnsupported: a value without a key in files of the family, a
// tensor without a name, a tokenizer that is not BPE of a known kind. Other errors as in
// read_model_config.
Result<GgufModel> read_gguf_model(const Checkpoint& checkpoint);

}  // namespace pagoda
