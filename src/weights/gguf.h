// GgufFile: a GGUF file's metadata and tensors, checked, and left in place in the mapping.
//
// A file is little-endian and laid out as below (ggml's description of GGUF). Versions 2 and 3
// differ only in byte order; big endian is refused.
//
//   "GGUF" | version u32 | num_tensors u64 | num_keys u64
//   num_keys x    { key string | type u32 | value }
//   num_tensors x { name string | num_dims u32 | dims u64[] | type u32 | offset u64 }
//   padding to general.alignment (32 unless the key says otherwise)
//   data: each tensor at its offset from here
//
// A string: length u64, bytes. An array: type u32, count u64, elements.
//
// dims[0] is the innermost extent. A GgufTensor's shape is row-major, so it has them in reverse
// order.
//
// Parsing allocates memory in proportion to the keys and tensors that the file has, whatever
// lengths it claims. It copies no value: strings and arrays are read on demand, as views into the
// mapping. The views live as long as the GgufFile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/shape.h"
#include "core/status.h"
#include "quant/host_tensor.h"

namespace pagoda {

// The numbers are the format's.
enum class GgufType : std::uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};

std::string_view gguf_type_name(GgufType type);

// A key and its value, which parsing has checked to lie wholly inside the file.
struct GgufEntry {
  std::string_view key;
  GgufType type = GgufType::kUint8;
  GgufType element_type =
      GgufType::kUint8;  // of an array's elements or of the scalar; kArray (nesting) is refused
  std::uint64_t num_elements = 1;
  std::span<const std::byte> bytes;  // the elements; a string with its length before it
};

struct GgufTensor {
  std::string_view name;               // as the file has it: "blk.3.ffn_up.weight"
  std::uint32_t type_id = 0;           // ggml's number
  std::optional<WeightFormat> format;  // absent: nothing here reads that type, and `bytes` is empty
  Shape shape;
  std::span<const std::byte> bytes;
  std::shared_ptr<const HostStorage> storage;
};

// Returns ggml's name of a type, supported or not: "Q4_K"; "type 77" for an unknown type.
std::string gguf_tensor_type_name(std::uint32_t type_id);

// Immutable, so thread-safe.
class GgufFile {
 public:
  // Maps and parses the file and, if it is the first of a split set (name-00001-of-0000N.gguf), all
  // the others: metadata is the first file's, tensors are those of all. Errors: kNotFound (also a
  // missing part, by name), kInvalidArgument (a later part), kDataLoss (truncated or
  // contradictory), kUnsupported (version, byte order, nested arrays).
  static Result<std::shared_ptr<const GgufFile>> open(const std::string& path);
  // Does the same for one whole file in memory, which `storage` (may be null) keeps alive.
  static Result<std::shared_ptr<const GgufFile>> parse(std::span<const std::byte> bytes,
                                                       std::shared_ptr<const HostStorage> storage);

  bool has(std::string_view key) const { return find(key) != nullptr; }

  // Reads a key. kNotFound: no such key. kDataLoss: another type than the requested one. integer()
  // takes integers of any width and signedness whose value fits; number() takes integers too.
  Result<std::string_view> string(std::string_view key) const;
  Result<std::int64_t> integer(std::string_view key) const;
  Result<double> number(std::string_view key) const;
  Result<bool> boolean(std::string_view key) const;
  Result<std::vector<std::string_view>> strings(std::string_view key) const;
  Result<std::vector<std::int64_t>> integers(std::string_view key) const;
  Result<std::vector<float>> numbers(std::string_view key) const;
  Result<std::vector<bool>> booleans(std::string_view key) const;

  // Reads a key that may be absent. Only kNotFound is replaced: a key of the wrong type stays an
  // error.
  Result<std::string_view> string_or(std::string_view key, std::string_view otherwise) const;
  Result<std::int64_t> integer_or(std::string_view key, std::int64_t otherwise) const;
  Result<double> number_or(std::string_view key, double otherwise) const;
  Result<bool> boolean_or(std::string_view key, bool otherwise) const;

  const std::vector<GgufEntry>& entries() const {
    return entries_;
  }  // as the (first) file orders them
  const std::vector<GgufTensor>& tensors() const { return tensors_; }  // as the files order them
  std::uint32_t version() const { return version_; }
  std::int64_t file_bytes() const { return file_bytes_; }  // of all parts
  // Returns the paths of all parts; empty if the file was parsed in memory.
  const std::vector<std::string>& paths() const { return paths_; }

 private:
  friend class GgufParser;

  const GgufEntry* find(std::string_view key) const;
  Result<const GgufEntry*> scalar(std::string_view key, std::string_view expected) const;
  Result<const GgufEntry*> array(std::string_view key, std::string_view expected) const;
  Status parse_file(const std::string& path);
  Status append_part(const std::string& path, int part, int num_parts);

  std::uint32_t version_ = 0;
  std::int64_t file_bytes_ = 0;
  std::vector<std::string> paths_;
  std::vector<GgufEntry> entries_;
  std::vector<std::uint32_t> by_key_;  // indices into entries_, sorted by key
  std::vector<GgufTensor> tensors_;
  std::vector<std::shared_ptr<const HostStorage>> storages_;  // of all parts
};

// Returns one readable line: "576", "\"llama\"", "[49152 x string]"; a long string is cut at 60
// bytes.
std::string to_string(const GgufEntry& entry);

}  // namespace pagoda
