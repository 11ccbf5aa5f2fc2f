// safetensors, Hugging Face's format, a file or a set of them with an index
// (https://github.com/huggingface/safetensors):
//
//   header_bytes u64 | header: JSON | data
//   { "name": {"dtype": "BF16", "shape": [...], "data_offsets": [begin, end]}, ... }
//
// Offsets count from the start of the data. The tensors must fill the data without a hole or an
// overlap, which is checked. Shapes are checked against offsets, products for overflow, and names
// for repetition. The header is read as a stream of JSON events, so memory grows only with the
// number of its tensors.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "weights/stored_tensor.h"

namespace pagoda {

// Parses one whole file, which `storage` (may be null) keeps alive. The tensors are in the order of
// their data. kDataLoss says what is wrong.
Result<std::vector<StoredTensor>> parse_safetensors(
    std::span<const std::byte> bytes, const std::shared_ptr<const HostStorage>& storage);

// Reads model.safetensors.index.json: it maps each tensor's name to a file's name. A file name that
// leads out of the folder is refused.
Result<std::map<std::string, std::string>> parse_safetensors_index(std::string_view json);

struct SafetensorsSet {
  std::vector<StoredTensor> tensors;
  std::int64_t file_bytes = 0;
  std::vector<std::string> paths;  // of the files
};

// Opens the folder's model.safetensors or, without one, the files that its index names. kNotFound:
// neither, or a file of the index is missing (which the message names).
Result<SafetensorsSet> open_safetensors(const std::string& folder);

}  // namespace pagoda
