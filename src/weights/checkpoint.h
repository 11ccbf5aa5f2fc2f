// Checkpoint: the tensors and metadata of a model on disk, whatever its format.
//
// Two formats are known: a folder as Hugging Face saves it, and a GGUF file. The folder has
// config.json and *.safetensors with or without an index, possibly in MLX's affine groups. The GGUF
// file may be the first of a split set. Files are memory-mapped read-only. Every length and offset
// in them is checked before use, so a HostTensor's bytes are always inside its file. Names are
// those of the file; renamed() gives the canonical names of its family.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "quant/host_tensor.h"
#include "weights/gguf.h"

namespace pagoda {

struct MlxQuantization;
struct StoredTensor;
struct TensorNames;

// Immutable, so thread-safe; a copy is cheap and shares the mappings.
class Checkpoint {
 public:
  // Opens `path`: a folder, or a .gguf file. kNotFound: no such path, no weights in the folder.
  // kInvalidArgument: no regular file, a later part of a split set, a wrong value in config.json's
  // quantization. kDataLoss: truncated or contradictory. kUnsupported: a GGUF version or byte
  // order, a quantization that is not MLX's. An unsupported tensor type is an error only when that
  // tensor is requested.
  static Result<Checkpoint> open(const std::string& path);

  // Returns the same checkpoint with canonical names. `names` translates those of a GGUF file. A
  // folder with a text tower gets the names of a model without towers, and loses the tensors of
  // other towers. A model that was saved without its head gets the prefix "model.". kDataLoss: two
  // tensors would have one name.
  Result<Checkpoint> renamed(const TensorNames& names) const;

  // Returns the tensor of that name; kNotFound names it. A matrix of affine groups is one tensor
  // [rows, cols] under its weight's name. Rows in MXFP4 are one under the name of their codes. Errors
  // in parts are reported here.
  Result<HostTensor> tensor(std::string_view name) const;
  bool has(std::string_view name) const;
  // Returns the names, sorted; without the scales and biases that belong to affine groups.
  std::vector<std::string> names() const;

  // Returns the GGUF file; null for a folder.
  const GgufFile* gguf() const { return gguf_.get(); }
  // Returns the folder; empty for a GGUF file.
  const std::string& folder() const { return folder_; }
  std::int64_t file_bytes() const { return file_bytes_; }  // of all weight files together
  // Returns the paths of all files that determine what the model computes: weights, and a folder's
  // config.json.
  const std::vector<std::string>& paths() const { return paths_; }

 private:
  static Result<Checkpoint> open_gguf(const std::string& path);
  static Result<Checkpoint> open_folder(const std::string& path);
  Status index(std::vector<StoredTensor> tensors);
  Status read_affine();
  bool is_part(std::string_view name) const;
  Result<HostTensor> quantized_matrix(const StoredTensor& codes) const;
  const StoredTensor* find(std::string_view name) const;

  std::string folder_;
  std::shared_ptr<const GgufFile> gguf_;
  std::shared_ptr<const std::vector<StoredTensor>> tensors_;  // sorted by name
  std::shared_ptr<const MlxQuantization> affine_;             // null: nothing is in affine groups
  std::int64_t file_bytes_ = 0;
  std::vector<std::string> paths_;
};

}  // namespace pagoda
