#include "weights/gguf_parser.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <utility>

#include "weights/gguf_types.h"
#include "weights/printable.h"

namespace pagoda {
namespace {

static_assert(std::endian::native == std::endian::little, "values are read as they lie");

constexpr std::uint32_t kMagic = 0x46554747;  // "GGUF"
// Far above any model (a thousand layers of a dozen tensors each), and low enough to bound memory:
// an entry here takes 80 bytes.
constexpr std::uint64_t kMaxEntries = 1 << 16;
constexpr std::uint64_t kMaxTensors = 1 << 18;
constexpr std::uint64_t kMaxKeyBytes = 65535;  // the format's limit
constexpr std::uint64_t kMaxNameBytes = 256;   // ggml's limit is 64
// The least number of bytes of a key with its value, and of a tensor's description.
constexpr std::uint64_t kMinEntryBytes = 8 + 4 + 1;
constexpr std::uint64_t kMinTensorBytes = 8 + 4 + 8 + 4 + 8;
constexpr std::uint64_t kDefaultAlignment = 32;
// Eight is the format's minimum; more than a megabyte is a mistake in the file.
constexpr std::uint64_t kMinAlignment = 8;
constexpr std::uint64_t kMaxAlignment = 1 << 20;

// Returns an item whose key or name occurs twice, or null. `order` sorts the items by `name`.
template <typename T, typename Name>
const T* find_duplicate(const std::vector<T>& items, const std::vector<std::uint32_t>& order,
                        Name name) {
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (name(items[order[i - 1]]) == name(items[order[i]])) return &items[order[i]];
  }
  return nullptr;
}

template <typename T, typename Less>
std::vector<std::uint32_t> sorted_order(const std::vector<T>& items, Less less) {
  std::vector<std::uint32_t> order(items.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return less(items[a], items[b]); });
  return order;
}

}  // namespace

std::size_t gguf_element_bytes(GgufType type) {
  switch (type) {
    case GgufType::kUint8:
    case GgufType::kInt8:
    case GgufType::kBool:
      return 1;
    case GgufType::kUint16:
    case GgufType::kInt16:
      return 2;
    case GgufType::kUint32:
    case GgufType::kInt32:
    case GgufType::kFloat32:
      return 4;
    case GgufType::kUint64:
    case GgufType::kInt64:
    case GgufType::kFloat64:
      return 8;
    case GgufType::kString:
    case GgufType::kArray:
      return 0;
  }
  return 0;
}

GgufParser::GgufParser(std::span<const std::byte> bytes, std::shared_ptr<const HostStorage> storage)
    : bytes_(bytes), storage_(std::move(storage)) {}

template <typename T>
bool GgufParser::read(T& value) {
  if (remaining() < sizeof(T)) return false;
  std::memcpy(&value, bytes_.data() + position_, sizeof(T));
  position_ += sizeof(T);
  return true;
}

bool GgufParser::read_string(std::string_view& text) {
  const std::size_t start = position_;
  std::uint64_t length = 0;
  if (!read(length)) return false;
  if (length > remaining()) {
    position_ = start;
    return false;
  }
  text = {reinterpret_cast<const char*>(bytes_.data()) + position_, length};
  position_ += length;
  return true;
}

bool GgufParser::skip(std::uint64_t num_bytes) {
  if (num_bytes > remaining()) return false;
  position_ += num_bytes;
  return true;
}

Status GgufParser::truncated(std::string_view expected) const {
  return data_loss("[gguf] expected {} at byte {}, but the file ends at byte {}", expected,
                   position_, bytes_.size());
}

Status GgufParser::parse_into(GgufFile& file) {
  PAGODA_RETURN_IF_ERROR(parse_header(file));
  PAGODA_RETURN_IF_ERROR(parse_entries(file));
  PAGODA_RETURN_IF_ERROR(parse_tensors(file));
  PAGODA_RETURN_IF_ERROR(place_tensors(file));
  file.file_bytes_ = static_cast<std::int64_t>(bytes_.size());
  if (storage_ != nullptr) file.storages_.push_back(storage_);
  return ok_status();
}

Status GgufParser::parse_header(GgufFile& file) {
  std::uint32_t magic = 0;
  if (!read(magic)) return truncated("the magic \"GGUF\"");
  if (magic != kMagic) {
    return data_loss("[gguf] expected the magic \"GGUF\", got \"{}\"",
                     printable({reinterpret_cast<const char*>(bytes_.data()), 4}));
  }
  if (!read(file.version_)) return truncated("a version");
  if (file.version_ != 0 && (file.version_ & 0xffff) == 0) {
    return unsupported("[gguf] expected a little-endian file, got a big-endian one");
  }
  if (file.version_ != 2 && file.version_ != 3) {
    return unsupported("[gguf] expected version 2 or 3, got {}", file.version_);
  }
  if (!read(num_tensors_) || !read(num_entries_))
    return truncated("the numbers of tensors and keys");
  if (num_tensors_ > std::min(kMaxTensors, remaining() / kMinTensorBytes)) {
    return data_loss("[gguf] {} tensors are more than a file of {} bytes can describe",
                     num_tensors_, bytes_.size());
  }
  if (num_entries_ > std::min(kMaxEntries, remaining() / kMinEntryBytes)) {
    return data_loss("[gguf] {} keys are more than a file of {} bytes can hold", num_entries_,
                     bytes_.size());
  }
  return ok_status();
}

Status GgufParser::parse_entries(GgufFile& file) {
  file.entries_.resize(num_entries_);
  for (std::size_t i = 0; i < num_entries_; ++i) {
    GgufEntry& entry = file.entries_[i];
    if (!read_string(entry.key)) return truncated(fmt::format("key {} of {}", i + 1, num_entries_));
    if (entry.key.empty() || entry.key.size() > kMaxKeyBytes) {
      return data_loss("[gguf] key {} of {}: expected a name of 1 to {} bytes, got {}", i + 1,
                       num_entries_, kMaxKeyBytes, entry.key.size());
    }
    PAGODA_RETURN_IF_ERROR(parse_value(entry));
  }
  const auto key = [](const GgufEntry& entry) { return entry.key; };
  file.by_key_ = sorted_order(file.entries_,
                              [](const GgufEntry& a, const GgufEntry& b) { return a.key < b.key; });
  if (const GgufEntry* twice = find_duplicate(file.entries_, file.by_key_, key)) {
    return data_loss("[gguf] key {} stands twice in the file", printable(twice->key));
  }
  return ok_status();
}

Status GgufParser::parse_value(GgufEntry& entry) {
  const auto value_of = [&entry] { return "the value of key " + printable(entry.key); };
  std::uint32_t type = 0;
  if (!read(type)) return truncated(value_of());
  entry.type = entry.element_type = static_cast<GgufType>(type);
  if (entry.type == GgufType::kArray) {
    std::uint32_t element_type = 0;
    if (!read(element_type) || !read(entry.num_elements)) return truncated(value_of());
    entry.element_type = static_cast<GgufType>(element_type);
    if (entry.element_type == GgufType::kArray) {
      return unsupported("[gguf] key {}: arrays of arrays are not supported", printable(entry.key));
    }
  }
  const std::size_t start = position_;
  if (entry.element_type == GgufType::kString) {
    PAGODA_RETURN_IF_ERROR(skip_strings(entry));
  } else {
    const std::size_t element_bytes = gguf_element_bytes(entry.element_type);
    if (element_bytes == 0) {
      return data_loss("[gguf] key {}: {} is no type", printable(entry.key),
                       static_cast<std::uint32_t>(entry.element_type));
    }
    if (entry.num_elements > remaining() / element_bytes) return truncated(value_of());
    skip(entry.num_elements * element_bytes);
  }
  entry.bytes = bytes_.subspan(start, position_ - start);
  if (entry.element_type == GgufType::kBool) {
    for (const std::byte byte : entry.bytes) {
      if (byte > std::byte{1}) {
        return data_loss("[gguf] key {}: expected a bool of 0 or 1, got {}", printable(entry.key),
                         std::to_integer<int>(byte));
      }
    }
  }
  return ok_status();
}

Status GgufParser::skip_strings(const GgufEntry& entry) {
  for (std::uint64_t i = 0; i < entry.num_elements; ++i) {
    std::string_view text;
    if (!read_string(text)) {
      return truncated(fmt::format("string {} of {} of key {}", i + 1, entry.num_elements,
                                   printable(entry.key)));
    }
  }
  return ok_status();
}

Status GgufParser::parse_tensors(GgufFile& file) {
  file.tensors_.resize(num_tensors_);
  offsets_.resize(num_tensors_);
  for (std::size_t i = 0; i < num_tensors_; ++i) {
    GgufTensor& tensor = file.tensors_[i];
    if (!read_string(tensor.name)) {
      return truncated(fmt::format("tensor {} of {}", i + 1, num_tensors_));
    }
    if (tensor.name.empty() || tensor.name.size() > kMaxNameBytes) {
      return data_loss("[gguf] tensor {} of {}: expected a name of 1 to {} bytes, got {}", i + 1,
                       num_tensors_, kMaxNameBytes, tensor.name.size());
    }
    PAGODA_RETURN_IF_ERROR(parse_tensor(tensor));
    if (!read(offsets_[i])) return truncated("the offset of tensor " + printable(tensor.name));
    tensor.storage = storage_;
  }
  const auto order = sorted_order(
      file.tensors_, [](const GgufTensor& a, const GgufTensor& b) { return a.name < b.name; });
  if (const GgufTensor* twice =
          find_duplicate(file.tensors_, order, [](const GgufTensor& t) { return t.name; })) {
    return data_loss("[gguf] tensor {} stands twice in the file", printable(twice->name));
  }
  return ok_status();
}

Status GgufParser::parse_tensor(GgufTensor& tensor) {
  PAGODA_RETURN_IF_ERROR(parse_shape(tensor));
  if (!read(tensor.type_id)) return truncated("the type of tensor " + printable(tensor.name));
  tensor.format = gguf_weight_format(tensor.type_id);
  if (!tensor.format) return ok_status();
  const int block_size = traits_of(*tensor.format).block_size;
  if (tensor.shape[-1] % block_size != 0) {
    return data_loss("[gguf] tensor {}: expected rows of whole {} blocks of {}, got {} values",
                     printable(tensor.name), traits_of(*tensor.format).name, block_size,
                     tensor.shape[-1]);
  }
  return ok_status();
}

Status GgufParser::parse_shape(GgufTensor& tensor) {
  std::uint32_t num_dims = 0;
  if (!read(num_dims)) return truncated("the shape of tensor " + printable(tensor.name));
  if (num_dims < 1 || num_dims > Shape::kMaxRank) {
    return data_loss("[gguf] tensor {}: expected 1 to {} dimensions, got {}",
                     printable(tensor.name), Shape::kMaxRank, num_dims);
  }
  // In every format a value takes at most four bytes, so this also keeps the byte count from
  // overflowing.
  constexpr std::uint64_t kMaxValues = std::uint64_t{1} << 60;
  std::uint64_t extents[Shape::kMaxRank];
  std::int64_t row_major[Shape::kMaxRank];
  std::uint64_t num_values = 1;
  for (std::uint32_t i = 0; i < num_dims; ++i) {
    if (!read(extents[i])) return truncated("the shape of tensor " + printable(tensor.name));
    if (extents[i] == 0 || extents[i] > kMaxValues / num_values) {
      return data_loss("[gguf] tensor {}: {} is no extent", printable(tensor.name), extents[i]);
    }
    num_values *= extents[i];
    row_major[num_dims - 1 - i] = static_cast<std::int64_t>(extents[i]);
  }
  tensor.shape = Shape(std::span<const std::int64_t>(row_major, num_dims));
  return ok_status();
}

Status GgufParser::place_tensors(GgufFile& file) {
  auto alignment = file.integer_or("general.alignment", kDefaultAlignment);
  PAGODA_RETURN_IF_ERROR(alignment.status());
  const auto align = static_cast<std::uint64_t>(*alignment);
  if (align < kMinAlignment || align > kMaxAlignment || !std::has_single_bit(align)) {
    return data_loss("[gguf] key general.alignment: expected a power of two of {} to {}, got {}",
                     kMinAlignment, kMaxAlignment, *alignment);
  }
  // A file without tensors may end before the padding.
  const std::uint64_t data_start =
      std::min<std::uint64_t>(align_up(position_, align), bytes_.size());
  const std::uint64_t data_bytes = bytes_.size() - data_start;
  for (std::size_t i = 0; i < num_tensors_; ++i) {
    GgufTensor& tensor = file.tensors_[i];
    const std::uint64_t offset = offsets_[i];
    if (offset % align != 0) {
      return data_loss("[gguf] tensor {}: expected an offset that is a multiple of {}, got {}",
                       printable(tensor.name), align, offset);
    }
    // The size of an unsupported type is unknown. So only the tensor's start is checked.
    const auto size =
        tensor.format
            ? static_cast<std::uint64_t>(packed_bytes(*tensor.format, tensor.shape.num_elements()))
            : 0;
    if (offset > data_bytes || size > data_bytes - offset) {
      return data_loss("[gguf] tensor {}: expected {} bytes at offset {}, but the data has {}",
                       printable(tensor.name), size, offset, data_bytes);
    }
    tensor.bytes = bytes_.subspan(data_start + offset, size);
  }
  const auto order = sorted_order(file.tensors_, [](const GgufTensor& a, const GgufTensor& b) {
    return a.bytes.data() < b.bytes.data();
  });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const GgufTensor& before = file.tensors_[order[i - 1]];
    const GgufTensor& after = file.tensors_[order[i]];
    if (before.bytes.data() + before.bytes.size() > after.bytes.data()) {
      return data_loss("[gguf] tensors {} and {} overlap", printable(before.name),
                       printable(after.name));
    }
  }
  return ok_status();
}

}  // namespace pagoda
