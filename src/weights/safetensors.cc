#include "weights/safetensors.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "core/json.h"
#include "weights/mapped_file.h"
#include "weights/printable.h"
#include "weights/safetensors_header.h"

namespace pagoda {
namespace {

static_assert(std::endian::native == std::endian::little, "values are read as they lie");

constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // as in the reference implementation
constexpr std::size_t kMaxIndexBytes = 64'000'000;      // a hundred thousand tensors take 10 MB

struct DType {
  std::string_view name;
  std::uint64_t bytes;
  std::optional<WeightFormat> format;
};

// The dtypes that take whole bytes. Others exist: a tensor of an unknown dtype is only checked to
// be inside the file.
constexpr DType kDTypes[] = {
    {"F32", 4, WeightFormat::kF32},   {"F16", 2, WeightFormat::kF16},
    {"BF16", 2, WeightFormat::kBF16}, {"F64", 8, std::nullopt},
    {"I64", 8, std::nullopt},         {"U64", 8, std::nullopt},
    {"I32", 4, std::nullopt},         {"U32", 4, std::nullopt},
    {"I16", 2, std::nullopt},         {"U16", 2, std::nullopt},
    {"I8", 1, std::nullopt},          {"U8", 1, std::nullopt},
    {"BOOL", 1, std::nullopt},        {"F8_E4M3", 1, std::nullopt},
    {"F8_E5M2", 1, std::nullopt},
};

const DType* find_dtype(std::string_view name) {
  for (const DType& dtype : kDTypes) {
    if (dtype.name == name) return &dtype;
  }
  return nullptr;
}

std::string describe(const std::vector<std::uint64_t>& shape) {
  return shape.empty() ? "a scalar" : fmt::format("{}", fmt::join(shape, " x "));
}

// Returns the bytes of an entry's values; nothing if they are more than 2^62.
std::optional<std::uint64_t> byte_count(const SafetensorsHeaderEntry& entry, std::uint64_t bytes) {
  constexpr std::uint64_t kMax = std::uint64_t{1} << 62;
  if (std::find(entry.shape.begin(), entry.shape.end(), 0u) != entry.shape.end()) return 0;
  for (const std::uint64_t extent : entry.shape) {
    if (extent > kMax / bytes) return std::nullopt;
    bytes *= extent;
  }
  return bytes;
}

Status check_extent(const SafetensorsHeaderEntry& entry, const DType* dtype,
                    std::uint64_t data_bytes) {
  const std::uint64_t begin = entry.data_offsets[0];
  const std::uint64_t end = entry.data_offsets[1];
  if (begin > end || end > data_bytes) {
    return data_loss(
        "[safetensors] tensor {}: expected offsets within {} bytes of data, got {} to {}",
        printable(entry.name), data_bytes, begin, end);
  }
  if (dtype == nullptr) return ok_status();
  const std::optional<std::uint64_t> wanted = byte_count(entry, dtype->bytes);
  if (!wanted || *wanted != end - begin) {
    return data_loss("[safetensors] tensor {}: {} of {} does not take the {} bytes of its offsets",
                     printable(entry.name), describe(entry.shape), printable(entry.dtype),
                     end - begin);
  }
  return ok_status();
}

// Checks that the tensors fill the data from its first byte to its last, one after the other.
Status check_filled(const std::vector<SafetensorsHeaderEntry>& entries, std::uint64_t data_bytes) {
  std::uint64_t filled = 0;
  for (const SafetensorsHeaderEntry& entry : entries) {
    if (entry.data_offsets[0] != filled) {
      return data_loss("[safetensors] tensor {}: expected to begin at byte {} of the data, got {}",
                       printable(entry.name), filled, entry.data_offsets[0]);
    }
    filled = entry.data_offsets[1];
  }
  if (filled != data_bytes) {
    return data_loss("[safetensors] expected {} bytes of data, got {}", filled, data_bytes);
  }
  return ok_status();
}

Status check_unique(const std::vector<SafetensorsHeaderEntry>& entries) {
  std::vector<std::string_view> names;
  names.reserve(entries.size());
  for (const SafetensorsHeaderEntry& entry : entries) names.push_back(entry.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return ok_status();
  return data_loss("[safetensors] tensor {} stands twice in the file", printable(*twice));
}

StoredTensor store(SafetensorsHeaderEntry entry, const DType* dtype,
                   std::span<const std::byte> data) {
  StoredTensor stored;
  stored.tensor.name = std::move(entry.name);
  stored.is_words = entry.dtype == "U32";
  stored.is_bytes = entry.dtype == "U8";
  if (dtype == nullptr || !dtype->format) stored.unsupported = printable(entry.dtype);
  if (!stored.unsupported.empty() && !stored.is_words && !stored.is_bytes) return stored;
  if (entry.shape.size() > Shape::kMaxRank) {
    stored.unsupported = fmt::format("{} of {} dimensions", entry.dtype, entry.shape.size());
    stored.is_words = stored.is_bytes = false;
    return stored;
  }
  if (dtype->format) stored.tensor.format = *dtype->format;
  const std::vector<std::int64_t> extents(entry.shape.begin(), entry.shape.end());
  stored.tensor.shape = Shape(std::span(extents));
  stored.tensor.bytes =
      data.subspan(entry.data_offsets[0], entry.data_offsets[1] - entry.data_offsets[0]);
  return stored;
}

bool is_plain_file_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
}

Result<SafetensorsSet> open_file(const std::string& path) {
  PAGODA_ASSIGN_OR_RETURN(const auto mapping, MappedFile::open(path));
  auto tensors = parse_safetensors(mapping->bytes(), mapping);
  PAGODA_RETURN_IF_ERROR(tensors.status().with_context(path));
  return SafetensorsSet{.tensors = *std::move(tensors),
                        .file_bytes = static_cast<std::int64_t>(mapping->bytes().size()),
                        .paths = {path}};
}

// Appends the tensors that the index places in `file`, but no others of that file.
Status append_shard(SafetensorsSet shard, const std::string& file,
                    const std::vector<std::string>& wanted, SafetensorsSet& set) {
  std::map<std::string_view, StoredTensor*> found;
  for (StoredTensor& stored : shard.tensors) found.emplace(stored.tensor.name, &stored);
  for (const std::string& name : wanted) {
    const auto it = found.find(name);
    if (it == found.end()) {
      return data_loss("[safetensors] the index places tensor {} in {}, which lacks it",
                       printable(name), file);
    }
    // A copy: moving would invalidate the names that `found` refers to.
    set.tensors.push_back(*it->second);
  }
  set.file_bytes += shard.file_bytes;
  set.paths.insert(set.paths.end(), shard.paths.begin(), shard.paths.end());
  return ok_status();
}

}  // namespace

Result<std::vector<StoredTensor>> parse_safetensors(
    std::span<const std::byte> bytes, const std::shared_ptr<const HostStorage>& storage) {
  std::uint64_t header_bytes = 0;
  if (bytes.size() < sizeof(header_bytes)) {
    return data_loss("[safetensors] expected at least 8 bytes, got {}", bytes.size());
  }
  std::memcpy(&header_bytes, bytes.data(), sizeof(header_bytes));
  const std::span<const std::byte> rest = bytes.subspan(sizeof(header_bytes));
  if (header_bytes > kMaxHeaderBytes) {
    return data_loss("[safetensors] expected a header of at most {} bytes, got {}", kMaxHeaderBytes,
                     header_bytes);
  }
  if (header_bytes > rest.size()) {
    return data_loss("[safetensors] expected a header of {} bytes, but the file ends after {}",
                     header_bytes, rest.size());
  }
  const std::span<const std::byte> data = rest.subspan(header_bytes);
  PAGODA_ASSIGN_OR_RETURN(
      auto entries,
      parse_safetensors_header({reinterpret_cast<const char*>(rest.data()), header_bytes}));
  for (const SafetensorsHeaderEntry& entry : entries) {
    PAGODA_RETURN_IF_ERROR(check_extent(entry, find_dtype(entry.dtype), data.size()));
  }
  PAGODA_RETURN_IF_ERROR(check_unique(entries));
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return std::tie(a.data_offsets, a.name) < std::tie(b.data_offsets, b.name);
  });
  PAGODA_RETURN_IF_ERROR(check_filled(entries, data.size()));
  std::vector<StoredTensor> tensors;
  tensors.reserve(entries.size());
  for (SafetensorsHeaderEntry& entry : entries) {
    const DType* dtype = find_dtype(entry.dtype);
    tensors.push_back(store(std::move(entry), dtype, data));
    tensors.back().tensor.storage = storage;
  }
  return tensors;
}

Result<std::map<std::string, std::string>> parse_safetensors_index(std::string_view json) {
  if (json.size() > kMaxIndexBytes) {
    return data_loss("[safetensors] index: expected at most {} bytes, got {}", kMaxIndexBytes,
                     json.size());
  }
  const auto index = parse_json(json, /*max_depth=*/2);  // the depth of the map's entries
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object()) {
    return data_loss("[safetensors] index: expected a JSON object with a weight_map");
  }
  std::map<std::string, std::string> files;
  for (const auto& [tensor, file] : index["weight_map"].items()) {
    if (!file.is_string() || !is_plain_file_name(file.get_ref<const std::string&>())) {
      return data_loss("[safetensors] index: expected a file name of this folder for tensor {}",
                       printable(tensor));
    }
    files.emplace(tensor, file.get_ref<const std::string&>());
  }
  return files;
}

Result<SafetensorsSet> open_safetensors(const std::string& folder) {
  const std::filesystem::path root(folder);
  std::error_code ignored;  // a path that cannot be examined counts as absent
  const std::string single = (root / "model.safetensors").string();
  if (std::filesystem::exists(single, ignored)) return open_file(single);
  const std::string index_path = (root / "model.safetensors.index.json").string();
  if (!std::filesystem::exists(index_path, ignored)) {
    if (std::filesystem::exists(root / "adapter_config.json", ignored)) {
      return unsupported(
          "[checkpoint] {}: an adapter alone (adapter_config.json) is not supported; merge it into "
          "its model's weights",
          folder);
    }
    const bool is_mistrals = std::filesystem::exists(root / "consolidated.safetensors", ignored);
    return not_found(
        "[checkpoint] {}: expected model.safetensors or model.safetensors.index.json, found {}",
        folder,
        is_mistrals ? "consolidated.safetensors, which is Mistral's own format; the config.json "
                      "and model*.safetensors of the same model are needed"
                    : "neither");
  }
  PAGODA_ASSIGN_OR_RETURN(const auto mapping, MappedFile::open(index_path));
  auto index = parse_safetensors_index(
      {reinterpret_cast<const char*>(mapping->bytes().data()), mapping->bytes().size()});
  PAGODA_RETURN_IF_ERROR(index.status().with_context(index_path));
  std::map<std::string, std::vector<std::string>> tensors_of_file;
  for (const auto& [tensor, file] : *index) tensors_of_file[file].push_back(tensor);
  SafetensorsSet set;
  for (const auto& [file, tensors] : tensors_of_file) {
    PAGODA_ASSIGN_OR_RETURN(auto shard, open_file((root / file).string()));
    PAGODA_RETURN_IF_ERROR(append_shard(std::move(shard), file, tensors, set));
  }
  return set;
}

}  // namespace pagoda
