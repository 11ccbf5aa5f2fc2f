// SafetensorsWriter: writes safetensors files and sharded folders for tests.
//
//   SafetensorsWriter()
//       .add("model.norm.weight", {64}, WeightFormat::kBF16, values)
//       .write(folder + "/model.safetensors");
#pragma once

#include <fmt/ranges.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/shape.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/reference_quantizers.h"

namespace pagoda::testing {

// Returns a file's bytes: the header's length, the header, the data. Header and data may be
// malformed.
inline std::vector<std::byte> safetensors_bytes(std::string_view header,
                                                std::span<const std::byte> data) {
  return ByteWriter().put<std::uint64_t>(header.size()).put_text(header).put_bytes(data).bytes();
}

class SafetensorsWriter {
 public:
  // Adds a tensor of kF32, kF16 or kBF16; names are plain ASCII without quotes.
  SafetensorsWriter& add(std::string_view name, const Shape& shape, WeightFormat format,
                         std::span<const float> values) {
    PAGODA_CHECK(static_cast<std::int64_t>(values.size()) == shape.num_elements(),
                 "as many values as the shape says");
    return add_raw(name, shape, traits_of(format).name, quantize(format, values));
  }
  SafetensorsWriter& add_raw(std::string_view name, const Shape& shape, std::string_view dtype,
                             std::vector<std::byte> bytes) {
    tensors_.push_back({std::string(name), shape, std::string(dtype), std::move(bytes)});
    return *this;
  }

  std::vector<std::byte> bytes() const {
    std::string header = R"({"__metadata__":{"format":"pt"})";
    ByteWriter data;
    for (const Tensor& tensor : tensors_) {
      const std::size_t begin = data.size();
      data.put_bytes(tensor.bytes);
      header +=
          fmt::format(R"(,"{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", tensor.name,
                      tensor.dtype, fmt::join(tensor.shape.extents(), ","), begin, data.size());
    }
    header += "}";
    while (header.size() % 8 != 0) header += ' ';
    return safetensors_bytes(header, data.bytes());
  }

  void write(const std::string& path) const { write_file(path, bytes()); }

  // Writes model-0000i-of-0000N.safetensors and their index, with the tensors split in order.
  void write_sharded(const std::string& folder, int num_shards) const {
    std::string map;
    for (int shard = 0; shard < num_shards; ++shard) {
      SafetensorsWriter writer;
      const std::size_t begin = tensors_.size() * shard / num_shards;
      const std::size_t end = tensors_.size() * (shard + 1) / num_shards;
      writer.tensors_.assign(tensors_.begin() + begin, tensors_.begin() + end);
      const std::string file = shard_name(shard, num_shards);
      writer.write(folder + "/" + file);
      for (const Tensor& tensor : writer.tensors_) {
        map += fmt::format("{}\"{}\":\"{}\"", map.empty() ? "" : ",", tensor.name, file);
      }
    }
    const std::string index = "{\"metadata\":{},\"weight_map\":{" + map + "}}";
    write_file(folder + "/model.safetensors.index.json", std::as_bytes(std::span(index)));
  }

  static std::string shard_name(int shard, int num_shards) {
    return fmt::format("model-{:05d}-of-{:05d}.safetensors", shard + 1, num_shards);
  }

 private:
  struct Tensor {
    std::string name;
    Shape shape;
    std::string dtype;
    std::vector<std::byte> bytes;
  };
  std::vector<Tensor> tensors_;
};

}  // namespace pagoda::testing
