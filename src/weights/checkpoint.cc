#include "weights/checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "weights/name_map.h"
#include "weights/printable.h"
#include "weights/safetensors.h"
#include "weights/stored_tensor.h"

namespace pagoda {
namespace {

std::vector<StoredTensor> stored_tensors(const GgufFile& file) {
  std::vector<StoredTensor> tensors;
  tensors.reserve(file.tensors().size());
  for (const GgufTensor& tensor : file.tensors()) {
    StoredTensor stored;
    stored.tensor.name = canonical_tensor_name(tensor.name);
    stored.tensor.shape = tensor.shape;
    stored.tensor.bytes = tensor.bytes;
    stored.tensor.storage = tensor.storage;
    if (tensor.format) {
      stored.tensor.format = *tensor.format;
    } else {
      stored.unsupported = gguf_tensor_type_name(tensor.type_id);
    }
    tensors.push_back(std::move(stored));
  }
  return tensors;
}

}  // namespace

Result<Checkpoint> Checkpoint::open(const std::string& path) {
  std::error_code error;
  const auto type = std::filesystem::status(path, error).type();
  if (type == std::filesystem::file_type::not_found || type == std::filesystem::file_type::none) {
    return not_found("[checkpoint] {}: no such file or folder", path);
  }
  if (type == std::filesystem::file_type::directory) return open_folder(path);
  return open_gguf(path);
}

Result<Checkpoint> Checkpoint::open_gguf(const std::string& path) {
  Checkpoint checkpoint;
  PAGODA_ASSIGN_OR_RETURN(checkpoint.gguf_, GgufFile::open(path));
  checkpoint.file_bytes_ = checkpoint.gguf_->file_bytes();
  PAGODA_RETURN_IF_ERROR(checkpoint.index(stored_tensors(*checkpoint.gguf_)).with_context(path));
  return checkpoint;
}

Result<Checkpoint> Checkpoint::open_folder(const std::string& path) {
  PAGODA_ASSIGN_OR_RETURN(SafetensorsSet set, open_safetensors(path));
  Checkpoint checkpoint;
  checkpoint.folder_ = path;
  checkpoint.file_bytes_ = set.file_bytes;
  PAGODA_RETURN_IF_ERROR(checkpoint.index(std::move(set.tensors)).with_context(path));
  return checkpoint;
}

Status Checkpoint::index(std::vector<StoredTensor> tensors) {
  std::sort(tensors.begin(), tensors.end(), [](const StoredTensor& a, const StoredTensor& b) {
    return a.tensor.name < b.tensor.name;
  });
  const auto twice = std::adjacent_find(
      tensors.begin(), tensors.end(),
      [](const StoredTensor& a, const StoredTensor& b) { return a.tensor.name == b.tensor.name; });
  if (twice != tensors.end()) {
    return data_loss("[checkpoint] tensor {} stands twice", printable(twice->tensor.name));
  }
  tensors_ = std::make_shared<const std::vector<StoredTensor>>(std::move(tensors));
  return ok_status();
}

const StoredTensor* Checkpoint::find(std::string_view name) const {
  if (tensors_ == nullptr) return nullptr;
  const auto found = std::lower_bound(tensors_->begin(), tensors_->end(), name,
                                      [](const StoredTensor& stored, std::string_view wanted) {
                                        return stored.tensor.name < wanted;
                                      });
  return found != tensors_->end() && found->tensor.name == name ? &*found : nullptr;
}

Result<HostTensor> Checkpoint::tensor(std::string_view name) const {
  const StoredTensor* stored = find(name);
  if (stored == nullptr) return not_found("[checkpoint] tensor {} is missing", name);
  if (!stored->unsupported.empty()) {
    return unsupported(
        "[checkpoint] tensor {}: {} is not supported; F32, F16, BF16, Q8_0, Q4_0 and "
        "Q4_1 are",
        name, stored->unsupported);
  }
  return stored->tensor;
}

bool Checkpoint::has(std::string_view name) const {
  return find(name) != nullptr;
}

std::vector<std::string> Checkpoint::names() const {
  std::vector<std::string> names;
  if (tensors_ == nullptr) return names;
  for (const StoredTensor& stored : *tensors_) names.push_back(stored.tensor.name);
  return names;
}

}  // namespace pagoda
