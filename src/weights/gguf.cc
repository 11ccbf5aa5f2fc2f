#include "weights/gguf.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <utility>

#include "weights/gguf_parser.h"
#include "weights/mapped_file.h"
#include "weights/printable.h"

namespace pagoda {
namespace {

template <typename T>
T load(std::span<const std::byte> bytes, std::uint64_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

// Returns the string whose length is stored at `position`, and moves `position` past the string.
// Parsing has checked that both are inside the file.
std::string_view next_string(std::span<const std::byte> bytes, std::size_t& position) {
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data() + position, sizeof(length));
  const auto* text = reinterpret_cast<const char*>(bytes.data()) + position + sizeof(length);
  position += sizeof(length) + length;
  return {text, length};
}

bool is_integer(GgufType type) {
  switch (type) {
    case GgufType::kUint8:
    case GgufType::kInt8:
    case GgufType::kUint16:
    case GgufType::kInt16:
    case GgufType::kUint32:
    case GgufType::kInt32:
    case GgufType::kUint64:
    case GgufType::kInt64:
      return true;
    default:
      return false;
  }
}

bool is_number(GgufType type) {
  return is_integer(type) || type == GgufType::kFloat32 || type == GgufType::kFloat64;
}

// Reads an element of an integer type; returns false if an unsigned one is beyond int64.
bool integer_at(const GgufEntry& entry, std::uint64_t i, std::int64_t& value) {
  switch (entry.element_type) {
    case GgufType::kUint8:
      value = load<std::uint8_t>(entry.bytes, i);
      return true;
    case GgufType::kInt8:
      value = load<std::int8_t>(entry.bytes, i);
      return true;
    case GgufType::kUint16:
      value = load<std::uint16_t>(entry.bytes, i);
      return true;
    case GgufType::kInt16:
      value = load<std::int16_t>(entry.bytes, i);
      return true;
    case GgufType::kUint32:
      value = load<std::uint32_t>(entry.bytes, i);
      return true;
    case GgufType::kInt32:
      value = load<std::int32_t>(entry.bytes, i);
      return true;
    case GgufType::kInt64:
      value = load<std::int64_t>(entry.bytes, i);
      return true;
    default:
      break;
  }
  const auto large = load<std::uint64_t>(entry.bytes, i);
  value = static_cast<std::int64_t>(large);
  return large <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
}

double number_at(const GgufEntry& entry, std::uint64_t i) {
  switch (entry.element_type) {
    case GgufType::kFloat32:
      return load<float>(entry.bytes, i);
    case GgufType::kFloat64:
      return load<double>(entry.bytes, i);
    case GgufType::kUint64:
      return static_cast<double>(load<std::uint64_t>(entry.bytes, i));
    default:
      break;
  }
  std::int64_t value = 0;
  integer_at(entry, i, value);
  return static_cast<double>(value);
}

std::string type_of(const GgufEntry& entry) {
  if (entry.type != GgufType::kArray) return std::string(gguf_type_name(entry.type));
  return fmt::format("array of {}", gguf_type_name(entry.element_type));
}

Status wrong_type(const GgufEntry& entry, std::string_view expected) {
  return data_loss("[gguf] key {}: expected {}, got {}", printable(entry.key), expected,
                   type_of(entry));
}

template <typename T>
Result<T> replace_missing(Result<T> result, T otherwise) {
  if (!result.ok() && result.status().code() == StatusCode::kNotFound) return otherwise;
  return result;
}

// Returns "-00001-of-00003.gguf".
std::string split_suffix(int part, int num_parts) {
  return fmt::format("-{:05d}-of-{:05d}.gguf", part + 1, num_parts);
}

}  // namespace

std::string_view gguf_type_name(GgufType type) {
  static constexpr std::string_view kNames[] = {"uint8",  "int8",    "uint16", "int16",  "uint32",
                                                "int32",  "float32", "bool",   "string", "array",
                                                "uint64", "int64",   "float64"};
  const auto index = static_cast<std::uint32_t>(type);
  return index < std::size(kNames) ? kNames[index] : "unknown";
}

std::string gguf_tensor_type_name(std::uint32_t type_id) {
  // ggml's numbers; an empty name is a number that it has retired.
  static constexpr std::string_view kNames[] = {
      "F32",     "F16",    "Q4_0",    "Q4_1",  "",       "",      "Q5_0",  "Q5_1",
      "Q8_0",    "Q8_1",   "Q2_K",    "Q3_K",  "Q4_K",   "Q5_K",  "Q6_K",  "Q8_K",
      "IQ2_XXS", "IQ2_XS", "IQ3_XXS", "IQ1_S", "IQ4_NL", "IQ3_S", "IQ2_S", "IQ4_XS",
      "I8",      "I16",    "I32",     "I64",   "F64",    "IQ1_M", "BF16",  "",
      "",        "",       "TQ1_0",   "TQ2_0", "",       "",      "",      "MXFP4"};
  if (type_id < std::size(kNames) && !kNames[type_id].empty()) return std::string(kNames[type_id]);
  return fmt::format("type {}", type_id);
}

Result<std::shared_ptr<const GgufFile>> GgufFile::parse(
    std::span<const std::byte> bytes, std::shared_ptr<const HostStorage> storage) {
  auto file = std::make_shared<GgufFile>();
  PAGODA_RETURN_IF_ERROR(GgufParser(bytes, std::move(storage)).parse_into(*file));
  return std::shared_ptr<const GgufFile>(std::move(file));
}

Result<std::shared_ptr<const GgufFile>> GgufFile::open(const std::string& path) {
  auto file = std::make_shared<GgufFile>();
  PAGODA_RETURN_IF_ERROR(file->parse_file(path));
  PAGODA_ASSIGN_OR_RETURN(const std::int64_t num_parts, file->integer_or("split.count", 1));
  if (num_parts <= 1) return std::shared_ptr<const GgufFile>(std::move(file));
  if (num_parts > 99999) {
    return data_loss("[gguf] key split.count: expected 1 to 99999 parts, got {}", num_parts);
  }
  const int count = static_cast<int>(num_parts);
  PAGODA_ASSIGN_OR_RETURN(const std::int64_t part, file->integer("split.no"));
  if (part != 0) {
    return invalid_argument("[gguf] {} is part {} of {}: open the one that ends in {}", path,
                            part + 1, count, split_suffix(0, count));
  }
  const std::string suffix = split_suffix(0, count);
  if (!path.ends_with(suffix)) {
    return invalid_argument("[gguf] {} is part 1 of {}: expected a name that ends in {}", path,
                            count, suffix);
  }
  const std::string stem = path.substr(0, path.size() - suffix.size());
  for (int i = 1; i < count; ++i) {
    PAGODA_RETURN_IF_ERROR(file->append_part(stem + split_suffix(i, count), i, count));
  }
  const auto found = static_cast<std::int64_t>(file->tensors_.size());
  PAGODA_ASSIGN_OR_RETURN(const std::int64_t wanted,
                          file->integer_or("split.tensors.count", found));
  if (wanted != found) {
    return data_loss("[gguf] {}: expected {} tensors in {} parts, got {}", path, wanted, count,
                     found);
  }
  return std::shared_ptr<const GgufFile>(std::move(file));
}

Status GgufFile::parse_file(const std::string& path) {
  PAGODA_ASSIGN_OR_RETURN(const auto mapping, MappedFile::open(path));
  paths_ = {path};
  return GgufParser(mapping->bytes(), mapping).parse_into(*this).with_context(path);
}

Status GgufFile::append_part(const std::string& path, int part, int num_parts) {
  GgufFile other;
  PAGODA_RETURN_IF_ERROR(other.parse_file(path));
  PAGODA_ASSIGN_OR_RETURN(const std::int64_t number, other.integer_or("split.no", 0));
  PAGODA_ASSIGN_OR_RETURN(const std::int64_t count, other.integer_or("split.count", 1));
  if (number != part || count != num_parts) {
    return data_loss("[gguf] {}: expected part {} of {}, got part {} of {}", path, part + 1,
                     num_parts, number + 1, count);
  }
  tensors_.insert(tensors_.end(), other.tensors_.begin(), other.tensors_.end());
  storages_.insert(storages_.end(), other.storages_.begin(), other.storages_.end());
  file_bytes_ += other.file_bytes_;
  paths_.insert(paths_.end(), other.paths_.begin(), other.paths_.end());
  return ok_status();
}

const GgufEntry* GgufFile::find(std::string_view key) const {
  const auto found = std::lower_bound(by_key_.begin(), by_key_.end(), key,
                                      [this](std::uint32_t index, std::string_view wanted) {
                                        return entries_[index].key < wanted;
                                      });
  if (found == by_key_.end() || entries_[*found].key != key) return nullptr;
  return &entries_[*found];
}

Result<const GgufEntry*> GgufFile::scalar(std::string_view key, std::string_view expected) const {
  const GgufEntry* entry = find(key);
  if (entry == nullptr) return not_found("[gguf] key {} is missing", key);
  if (entry->type == GgufType::kArray) return wrong_type(*entry, expected);
  return entry;
}

Result<const GgufEntry*> GgufFile::array(std::string_view key, std::string_view expected) const {
  const GgufEntry* entry = find(key);
  if (entry == nullptr) return not_found("[gguf] key {} is missing", key);
  if (entry->type != GgufType::kArray) return wrong_type(*entry, expected);
  return entry;
}

Result<std::string_view> GgufFile::string(std::string_view key) const {
  PAGODA_ASSIGN_OR_RETURN(const GgufEntry* entry, scalar(key, "a string"));
  if (entry->type != GgufType::kString) return wrong_type(*entry, "a string");
  std::size_t position = 0;
  return next_string(entry->bytes, position);
}

Result<std::int64_t> GgufFile::integer(std::string_view key) const {
  PAGODA_ASSIGN_OR_RETURN(const GgufEntry* entry, scalar(key, "an integer"));
  if (!is_integer(entry->type)) return wrong_type(*entry, "an integer");
  std::int64_t value = 0;
  if (!integer_at(*entry, 0, value)) return wrong_type(*entry, "an integer below 2^63");
  return value;
}

Result<double> GgufFile::number(std::string_view key) const {
  PAGODA_ASSIGN_OR_RETURN(const GgufEntry* entry, scalar(key, "a number"));
  if (!is_number(entry->type)) return wrong_type(*entry, "a number");
  return number_at(*entry, 0);
}

Result<bool> GgufFile::boolean(std::string_view key) const {
  PAGODA_ASSIGN_OR_RETURN(const GgufEntry* entry, scalar(key, "a bool"));
  if (entry->type != GgufType::kBool) return wrong_type(*entry, "a bool");
  return entry->bytes[0] != std::byte{0};
}

Result<std::vector<std::string_view>> GgufFile::strings(std::string_view key) const {
  PAGODA_ASSIGN_OR_RETURN(const GgufEntry* entry, array(key, "an array of strings"));
  if (entry->element_type != GgufType::kString) return wrong_type(*entry, "an array of strings");
  std::vector<std::string_view> values(entry->num_elements);
  std::size_t position = 0;
  for (std::string_view& value : values) value = next_string(entry->bytes, position);
  return values;
}

Result<std::vector<std::int64_t>> GgufFile::integers(std::string_view key) const {
  PAGODA_ASSIGN_OR_RETURN(const GgufEntry* entry, array(key, "an array of integers"));
  if (!is_integer(entry->element_type)) return wrong_type(*entry, "an array of integers");
  std::vector<std::int64_t> values(entry->num_elements);
  for (std::uint64_t i = 0; i < values.size(); ++i) {
    if (!integer_at(*entry, i, values[i])) return wrong_type(*entry, "integers below 2^63");
  }
  return values;
}

Result<std::vector<float>> GgufFile::numbers(std::string_view key) const {
  PAGODA_ASSIGN_OR_RETURN(const GgufEntry* entry, array(key, "an array of numbers"));
  if (!is_number(entry->element_type)) return wrong_type(*entry, "an array of numbers");
  std::vector<float> values(entry->num_elements);
  for (std::uint64_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(number_at(*entry, i));
  }
  return values;
}

Result<std::vector<bool>> GgufFile::booleans(std::string_view key) const {
  PAGODA_ASSIGN_OR_RETURN(const GgufEntry* entry, array(key, "an array of bools"));
  if (entry->element_type != GgufType::kBool) return wrong_type(*entry, "an array of bools");
  std::vector<bool> values(entry->num_elements);
  for (std::uint64_t i = 0; i < values.size(); ++i) values[i] = entry->bytes[i] != std::byte{0};
  return values;
}

Result<std::string_view> GgufFile::string_or(std::string_view key,
                                             std::string_view otherwise) const {
  return replace_missing(string(key), otherwise);
}

Result<std::int64_t> GgufFile::integer_or(std::string_view key, std::int64_t otherwise) const {
  return replace_missing(integer(key), otherwise);
}

Result<double> GgufFile::number_or(std::string_view key, double otherwise) const {
  return replace_missing(number(key), otherwise);
}

Result<bool> GgufFile::boolean_or(std::string_view key, bool otherwise) const {
  return replace_missing(boolean(key), otherwise);
}

std::string to_string(const GgufEntry& entry) {
  if (entry.type == GgufType::kArray) {
    return fmt::format("[{} x {}]", entry.num_elements, gguf_type_name(entry.element_type));
  }
  if (entry.type == GgufType::kString) {
    std::size_t position = 0;
    return fmt::format("\"{}\"", printable(next_string(entry.bytes, position), 60));
  }
  if (entry.type == GgufType::kBool) return entry.bytes[0] == std::byte{0} ? "false" : "true";
  if (entry.type == GgufType::kUint64)
    return fmt::format("{}", load<std::uint64_t>(entry.bytes, 0));
  if (entry.type == GgufType::kFloat32) return fmt::format("{}", load<float>(entry.bytes, 0));
  if (entry.type == GgufType::kFloat64) return fmt::format("{}", load<double>(entry.bytes, 0));
  std::int64_t value = 0;
  integer_at(entry, 0, value);
  return fmt::format("{}", value);
}

}  // namespace pagoda
