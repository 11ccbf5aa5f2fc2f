// GgufWriter: writes GGUF files for tests, including tiny models in any format and malformed files.
//
//   GgufWriter()
//       .set("general.architecture", "llama")
//       .set("llama.block_count", std::uint32_t{2})
//       .set("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b"})
//       .add_tensor("output_norm.weight", {64}, WeightFormat::kF32, values)
//       .write(path);
#pragma once

#include <cstdint>
#include <cstring>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/shape.h"
#include "quant/weight_format.h"
#include "tests/support/reference_quantizers.h"
#include "weights/gguf_types.h"
#include "weights/gguf_writer.h"

namespace pagoda::testing {

// Writes little-endian values in a row, for any binary format, malformed files included.
class ByteWriter {
 public:
  template <typename T>
    requires std::is_arithmetic_v<T>
  ByteWriter& put(T value) {
    const auto* start = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), start, start + sizeof(value));
    return *this;
  }
  ByteWriter& put_bytes(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  ByteWriter& put_text(std::string_view text) {
    return put_bytes(std::as_bytes(std::span(text.data(), text.size())));
  }
  // Puts a string in GGUF's form: the length first.
  ByteWriter& put_string(std::string_view text) {
    return put<std::uint64_t>(text.size()).put_text(text);
  }
  ByteWriter& pad_to(std::size_t alignment) {
    while (bytes_.size() % alignment != 0) bytes_.push_back(std::byte{0});
    return *this;
  }
  std::size_t size() const { return bytes_.size(); }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

inline void write_file(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  PAGODA_CHECK(file.good(), "cannot write " + path);
}

class GgufWriter {
 public:
  // Sets a key to a bool, a number of 8 to 64 bits, text, or a std::vector of one of them.
  template <typename T>
  GgufWriter& set(std::string_view key, const T& value) {
    metadata_.set(key, value);
    return *this;
  }

  // Adds a tensor. `shape` is row-major, as in Hugging Face: [out_features, in_features]. Rows are
  // whole blocks of the format.
  GgufWriter& add_tensor(std::string_view name, const Shape& shape, WeightFormat format,
                         std::span<const float> values) {
    PAGODA_CHECK(static_cast<std::int64_t>(values.size()) == shape.num_elements(),
                 "as many values as the shape says");
    return add_raw_tensor(name, shape, type_id(format), quantize(format, values));
  }
  // Adds a tensor of any of ggml's types by its number, with bytes of any length.
  GgufWriter& add_raw_tensor(std::string_view name, const Shape& shape, std::uint32_t type_id,
                             std::vector<std::byte> bytes) {
    tensors_.push_back({std::string(name), shape, type_id, std::move(bytes)});
    return *this;
  }
  GgufWriter& version(std::uint32_t version) {
    version_ = version;
    return *this;
  }
  // Sets the alignment, and the key general.alignment.
  GgufWriter& alignment(std::uint32_t alignment) {
    alignment_ = alignment;
    return set("general.alignment", alignment);
  }

  std::vector<std::byte> bytes() const {
    ByteWriter out;
    out.put_text("GGUF").put(version_).put<std::uint64_t>(tensors_.size());
    out.put(metadata_.num_entries()).put_bytes(metadata_.bytes());
    std::uint64_t offset = 0;
    for (const Tensor& tensor : tensors_) {
      out.put_string(tensor.name).put(static_cast<std::uint32_t>(tensor.shape.rank()));
      for (int i = tensor.shape.rank() - 1; i >= 0; --i) {
        out.put(static_cast<std::uint64_t>(tensor.shape[i]));
      }
      out.put(tensor.type_id).put(offset);
      offset += (tensor.bytes.size() + alignment_ - 1) / alignment_ * alignment_;
    }
    out.pad_to(alignment_);
    for (const Tensor& tensor : tensors_) out.put_bytes(tensor.bytes).pad_to(alignment_);
    return out.bytes();
  }

  void write(const std::string& path) const { write_file(path, bytes()); }

  // Writes stem-00001-of-0000N.gguf and the files that follow it, with the tensors split in order.
  // Returns the first file's path.
  std::string write_split(const std::string& stem, int num_parts) const {
    for (int part = 0; part < num_parts; ++part) {
      GgufWriter writer;
      writer.version_ = version_;
      writer.alignment_ = alignment_;
      if (part == 0) writer.metadata_ = metadata_;
      writer.set("split.no", static_cast<std::uint16_t>(part));
      writer.set("split.count", static_cast<std::uint16_t>(num_parts));
      writer.set("split.tensors.count", static_cast<std::int32_t>(tensors_.size()));
      if (part != 0 && alignment_ != 32) writer.alignment(alignment_);
      const std::size_t begin = tensors_.size() * part / num_parts;
      const std::size_t end = tensors_.size() * (part + 1) / num_parts;
      writer.tensors_.assign(tensors_.begin() + begin, tensors_.begin() + end);
      writer.write(split_path(stem, part, num_parts));
    }
    return split_path(stem, 0, num_parts);
  }

  static std::string split_path(const std::string& stem, int part, int num_parts) {
    return fmt::format("{}-{:05d}-of-{:05d}.gguf", stem, part + 1, num_parts);
  }

  static std::uint32_t type_id(WeightFormat format) { return gguf_type_id(format).value(); }

 private:
  struct Tensor {
    std::string name;
    Shape shape;
    std::uint32_t type_id;
    std::vector<std::byte> bytes;
  };

  std::uint32_t version_ = 3;
  std::uint32_t alignment_ = 32;
  GgufMetadata metadata_;
  std::vector<Tensor> tensors_;
};

}  // namespace pagoda::testing
