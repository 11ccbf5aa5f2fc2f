#include "weights/gguf_writer.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "weights/gguf_types.h"
#include "weights/partial_file.h"

namespace pagoda {
namespace {

constexpr std::uint32_t kVersion = 3;

std::uint64_t tensor_bytes(const GgufTensorPlan& tensor) {
  return static_cast<std::uint64_t>(packed_bytes(tensor.format, tensor.shape.num_elements()));
}

class HeaderBytes {
 public:
  template <typename T>
  void put(T value) {
    const auto* start = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), start, start + sizeof(value));
  }
  void put(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void put(std::string_view text) {
    put(std::uint64_t{text.size()});
    put(std::as_bytes(std::span(text.data(), text.size())));
  }
  void pad_to(std::uint64_t alignment) { bytes_.resize(align_up(bytes_.size(), alignment)); }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

HeaderBytes header_of(const GgufPlan& plan) {
  HeaderBytes header;
  header.put(std::as_bytes(std::span("GGUF", 4)));
  header.put(kVersion);
  header.put(std::uint64_t{plan.tensors.size()});
  header.put(plan.metadata.num_entries());
  header.put(plan.metadata.bytes());
  std::uint64_t offset = 0;
  for (const GgufTensorPlan& tensor : plan.tensors) {
    const auto type_id = gguf_type_id(tensor.format);
    PAGODA_CHECK(type_id.has_value(), "[gguf] a format that GGUF does not have");
    header.put(std::string_view(tensor.name));
    header.put(static_cast<std::uint32_t>(tensor.shape.rank()));
    for (int i = tensor.shape.rank() - 1; i >= 0; --i) {
      header.put(static_cast<std::uint64_t>(tensor.shape[i]));
    }
    header.put(*type_id);
    header.put(offset);
    offset += align_up(tensor_bytes(tensor), plan.alignment);
  }
  header.pad_to(plan.alignment);
  return header;
}

Status write_tensor(const GgufPlan& plan, std::size_t index, const GgufSource& source,
                    PartialFile& file) {
  const std::uint64_t expected = tensor_bytes(plan.tensors[index]);
  std::uint64_t written = 0;
  PAGODA_RETURN_IF_ERROR(source(index, [&](std::span<const std::byte> bytes) {
    written += bytes.size();
    return file.append(bytes);
  }));
  PAGODA_CHECK(written == expected, fmt::format("[gguf] tensor {}: expected {} bytes, got {}",
                                                plan.tensors[index].name, expected, written));
  return file.append(std::vector<std::byte>(align_up(written, plan.alignment) - written));
}

}  // namespace

void GgufMetadata::start_entry(std::string_view key) {
  ++num_entries_;
  put_text(key);
}

void GgufMetadata::put_bytes(const void* bytes, std::size_t size) {
  const auto* start = static_cast<const std::byte*>(bytes);
  bytes_.insert(bytes_.end(), start, start + size);
}

void GgufMetadata::put_text(std::string_view text) {
  put_element(std::uint64_t{text.size()});
  put_bytes(text.data(), text.size());
}

GgufMetadata& GgufMetadata::copy(const GgufEntry& entry) {
  start_entry(entry.key);
  put_element(static_cast<std::uint32_t>(entry.type));
  if (entry.type == GgufType::kArray) {
    put_element(static_cast<std::uint32_t>(entry.element_type));
    put_element(entry.num_elements);
  }
  put_bytes(entry.bytes.data(), entry.bytes.size());
  return *this;
}

Status write_gguf(const std::string& path, const GgufPlan& plan, const GgufSource& source) {
  PartialFile file(path);
  PAGODA_RETURN_IF_ERROR(file.open());
  PAGODA_RETURN_IF_ERROR(file.append(header_of(plan).bytes()));
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    PAGODA_RETURN_IF_ERROR(write_tensor(plan, i, source, file));
  }
  return file.finish();
}

}  // namespace pagoda
