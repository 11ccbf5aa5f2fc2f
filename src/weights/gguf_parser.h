// GgufParser: parses one GGUF file's bytes into a GgufFile, and makes all checks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "core/status.h"
#include "weights/gguf.h"

namespace pagoda {

class GgufParser {
 public:
  GgufParser(std::span<const std::byte> bytes, std::shared_ptr<const HostStorage> storage);

  Status parse_into(GgufFile& file);

 private:
  Status parse_header(GgufFile& file);
  Status parse_entries(GgufFile& file);
  Status parse_value(GgufEntry& entry);
  Status skip_strings(const GgufEntry& entry);
  Status parse_tensors(GgufFile& file);
  Status parse_tensor(GgufTensor& tensor);
  Status parse_shape(GgufTensor& tensor);
  Status place_tensors(GgufFile& file);

  // Reads a value. read(), read_string() and skip() move past what they read. If too few bytes are
  // left, they return false and do not move.
  template <typename T>
  bool read(T& value);
  bool read_string(std::string_view& text);
  bool skip(std::uint64_t num_bytes);
  std::uint64_t remaining() const { return bytes_.size() - position_; }
  Status truncated(std::string_view expected) const;

  std::span<const std::byte> bytes_;
  std::shared_ptr<const HostStorage> storage_;
  std::size_t position_ = 0;
  std::uint64_t num_entries_ = 0;
  std::uint64_t num_tensors_ = 0;
  std::vector<std::uint64_t> offsets_;  // [num_tensors], from the start of the data
};

// Returns the bytes of one element; 0 for strings and arrays, which have no fixed size.
std::size_t gguf_element_bytes(GgufType type);

}  // namespace pagoda
