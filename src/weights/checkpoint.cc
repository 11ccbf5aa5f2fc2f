#include "weights/checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "core/log.h"
#include "weights/affine_tensor.h"
#include "weights/mapped_file.h"
#include "weights/mxfp4_tensor.h"
#include "weights/name_map.h"
#include "weights/printable.h"
#include "weights/safetensors.h"
#include "weights/stored_tensor.h"

namespace pagoda {
namespace {

constexpr std::size_t kMaxConfigBytes = 16 << 20;  // real ones have a few kilobytes
constexpr std::string_view kWeight = ".weight";
constexpr std::string_view kScales = ".scales";
constexpr std::string_view kBiases = ".biases";
constexpr std::string_view kMxfp4Blocks = "_blocks";  // gpt-oss's names
constexpr std::string_view kMxfp4Scales = "_scales";

// Returns "model.norm" of "model.norm.weight"; empty for a name that ends otherwise.
std::string_view module_of(std::string_view name, std::string_view suffix) {
  return name.ends_with(suffix) ? name.substr(0, name.size() - suffix.size()) : std::string_view();
}

std::string join(std::string_view module, std::string_view suffix) {
  return std::string(module).append(suffix);
}

bool is_codes(const StoredTensor& stored) {
  return stored.is_words && stored.tensor.name.ends_with(kWeight);
}

bool is_mxfp4_blocks(const StoredTensor& stored) {
  return stored.is_bytes && stored.tensor.name.ends_with(kMxfp4Blocks);
}

std::string config_path(const std::string& folder) {
  return (std::filesystem::path(folder) / "config.json").string();
}

bool is_there(const std::string& path) {
  std::error_code ignored;  // a path that cannot be examined counts as absent
  return std::filesystem::exists(path, ignored);
}

// Warns of an adapter in the folder. It may belong to another model, or be merged into the weights
// already: the files do not say.
void warn_of_adapter(const std::string& folder) {
  constexpr const char* kFile = "adapter_config.json";
  if (!is_there((std::filesystem::path(folder) / kFile).string())) return;
  log_warning(
      "[checkpoint] {}: {} is ignored: the weights beside it are served without the adapter",
      folder, kFile);
}

// Reads the affine groups that the folder's config.json describes; nothing without a config.json.
Result<std::optional<MlxQuantization>> read_mlx_quantization(const std::string& folder) {
  const std::string path = config_path(folder);
  if (!is_there(path)) return std::optional<MlxQuantization>();
  PAGODA_ASSIGN_OR_RETURN(const auto file, MappedFile::open(path));
  const auto bytes = file->bytes();
  if (bytes.size() > kMaxConfigBytes) {
    return data_loss("[config] {}: expected at most {} bytes, got {}", path, kMaxConfigBytes,
                     bytes.size());
  }
  return parse_mlx_quantization({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

std::vector<StoredTensor> stored_tensors(const GgufFile& file) {
  std::vector<StoredTensor> tensors;
  tensors.reserve(file.tensors().size());
  for (const GgufTensor& tensor : file.tensors()) {
    StoredTensor stored;
    stored.tensor.name = tensor.name;
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
  checkpoint.paths_ = checkpoint.gguf_->paths();
  PAGODA_RETURN_IF_ERROR(checkpoint.index(stored_tensors(*checkpoint.gguf_)).with_context(path));
  return checkpoint;
}

Result<Checkpoint> Checkpoint::open_folder(const std::string& path) {
  PAGODA_ASSIGN_OR_RETURN(SafetensorsSet set, open_safetensors(path));
  Checkpoint checkpoint;
  checkpoint.folder_ = path;
  checkpoint.file_bytes_ = set.file_bytes;
  checkpoint.paths_ = std::move(set.paths);
  if (std::string config = config_path(path); is_there(config))
    checkpoint.paths_.push_back(std::move(config));
  PAGODA_RETURN_IF_ERROR(checkpoint.index(std::move(set.tensors)).with_context(path));
  PAGODA_RETURN_IF_ERROR(checkpoint.read_affine().with_context(path));
  warn_of_adapter(path);
  return checkpoint;
}

namespace {

// A prefix of the names in a text tower, and the prefix of these names in a model without towers.
struct TowerPrefix {
  std::string_view stored;
  std::string_view canonical;
};
constexpr TowerPrefix kTowerPrefixes[] = {
    {"model.language_model.", "model."},
    {"language_model.model.", "model."},
    {"language_model.lm_head.", "lm_head."},
};

// Prefixes of the tensors of other towers.
constexpr std::string_view kOtherTowers[] = {"vision_tower.",
                                             "model.vision_tower.",
                                             "multi_modal_projector.",
                                             "model.multi_modal_projector.",
                                             "visual.",
                                             "model.visual.",
                                             "audio_tower.",
                                             "model.audio_tower.",
                                             "embed_vision.",
                                             "model.embed_vision.",
                                             "embed_audio.",
                                             "model.embed_audio."};

// Gives the text tower's tensors their names in a model without towers, and drops the tensors of
// other towers. Returns false, and changes nothing, if there is no text tower.
bool take_text_tower(std::vector<StoredTensor>& tensors) {
  bool is_tower = false;
  for (StoredTensor& stored : tensors) {
    for (const TowerPrefix& prefix : kTowerPrefixes) {
      if (!stored.tensor.name.starts_with(prefix.stored)) continue;
      stored.tensor.name.replace(0, prefix.stored.size(), prefix.canonical);
      is_tower = true;
      break;
    }
  }
  if (!is_tower) return false;
  std::erase_if(tensors, [](const StoredTensor& stored) {
    return std::ranges::any_of(kOtherTowers, [&](std::string_view prefix) {
      return stored.tensor.name.starts_with(prefix);
    });
  });
  return true;
}

// Adds the prefix "model." to the names of a model that was saved without its head. Returns false
// for other models.
bool name_bare_model(std::vector<StoredTensor>& tensors) {
  const bool is_bare = std::ranges::any_of(tensors, [](const StoredTensor& stored) {
    return stored.tensor.name == "embed_tokens.weight";
  });
  if (!is_bare) return false;
  for (StoredTensor& stored : tensors) stored.tensor.name.insert(0, "model.");
  return true;
}

}  // namespace

Result<Checkpoint> Checkpoint::renamed(const TensorNames& names) const {
  Checkpoint checkpoint = *this;
  std::vector<StoredTensor> tensors = *tensors_;
  if (gguf_ != nullptr) {
    for (StoredTensor& stored : tensors)
      stored.tensor.name = names.canonical_of(stored.tensor.name);
  } else if (!take_text_tower(tensors) && !name_bare_model(tensors)) {
    return checkpoint;
  }
  PAGODA_RETURN_IF_ERROR(checkpoint.index(std::move(tensors)));
  return checkpoint;
}

Status Checkpoint::read_affine() {
  if (std::none_of(tensors_->begin(), tensors_->end(), is_codes)) return ok_status();
  PAGODA_ASSIGN_OR_RETURN(std::optional<MlxQuantization> config, read_mlx_quantization(folder_));
  if (config) affine_ = std::make_shared<const MlxQuantization>(*std::move(config));
  return ok_status();
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
  if (is_codes(*stored) && (affine_ != nullptr || has(join(module_of(name, kWeight), kScales)))) {
    return quantized_matrix(*stored);
  }
  if (is_mxfp4_blocks(*stored)) {
    return join_mxfp4(*stored, find(join(module_of(name, kMxfp4Blocks), kMxfp4Scales)));
  }
  if (!stored->unsupported.empty()) {
    std::string supported;
    for (const WeightFormat format : kWeightFormats) {
      supported += fmt::format("{}{}", supported.empty() ? "" : ", ", traits_of(format).name);
    }
    return unsupported("[checkpoint] tensor {}: {} is not supported; these are: {}", name,
                       stored->unsupported, supported);
  }
  return stored->tensor;
}

Result<HostTensor> Checkpoint::quantized_matrix(const StoredTensor& codes) const {
  const std::string& name = codes.tensor.name;
  if (affine_ == nullptr) {
    return data_loss("[checkpoint] tensor {}: expected a quantization in config.json, got none",
                     printable(name));
  }
  const std::string_view module = module_of(name, kWeight);
  if (affine_->is_mxfp4(module)) return join_mxfp4(codes, find(join(module, kScales)));
  return join_affine({.codes = &codes,
                      .scales = find(join(module, kScales)),
                      .biases = find(join(module, kBiases))},
                     *affine_);
}

bool Checkpoint::has(std::string_view name) const {
  return find(name) != nullptr;
}

std::vector<std::string> Checkpoint::names() const {
  std::vector<std::string> names;
  if (tensors_ == nullptr) return names;
  for (const StoredTensor& stored : *tensors_) {
    if (!is_part(stored.tensor.name)) names.push_back(stored.tensor.name);
  }
  return names;
}

bool Checkpoint::is_part(std::string_view name) const {
  const std::string_view of_blocks = module_of(name, kMxfp4Scales);
  if (!of_blocks.empty()) {
    const StoredTensor* blocks = find(join(of_blocks, kMxfp4Blocks));
    if (blocks != nullptr && is_mxfp4_blocks(*blocks)) return true;
  }
  if (affine_ == nullptr) return false;
  for (const std::string_view suffix : {kScales, kBiases}) {
    const std::string_view module = module_of(name, suffix);
    if (module.empty()) continue;
    const StoredTensor* weight = find(join(module, kWeight));
    if (weight != nullptr && is_codes(*weight)) return true;
  }
  return false;
}

}  // namespace pagoda
