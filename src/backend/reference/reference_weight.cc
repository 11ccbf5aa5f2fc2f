#include "backend/reference/reference_weight.h"

#include <cstring>

#include "backend/native_exec.h"

namespace pagoda::reference {

std::int64_t ReferenceWeight::num_bytes() const {
  std::int64_t total = 0;
  for (const Part& part : parts_) total += static_cast<std::int64_t>(part.bytes->size());
  return total;
}

void ReferenceWeight::read_row(std::int64_t row, float* values) const {
  for (const Part& part : parts_) {
    if (row < part.rows) {
      const auto row_bytes = static_cast<std::size_t>(packed_bytes(part.format, cols_));
      const std::byte* begin = part.bytes->data() + static_cast<std::size_t>(row) * row_bytes;
      traits_of(part.format).dequantize({begin, row_bytes}, values);
      return;
    }
    row -= part.rows;
  }
  PAGODA_CHECK(false, fmt::format("[weight] row {} past the end", row));
}

Result<Weight> prepare_weight(Exec& exec, std::span<const HostTensor> parts) {
  auto& native = static_cast<NativeExec&>(exec);
  std::vector<ReferenceWeight::Part> copies;
  Weight weight{.rows = 0, .cols = parts[0].shape[1]};
  for (const HostTensor& part : parts) {
    PAGODA_ASSIGN_OR_RETURN(BufferRef bytes, native.allocate_weight_bytes(part.bytes.size()));
    std::memcpy(bytes->data(), part.bytes.data(), part.bytes.size());
    if (part.storage) part.storage->release_pages(part.bytes);
    copies.push_back({part.format, part.shape[0], std::move(bytes)});
    weight.rows += part.shape[0];
  }
  weight.packed = std::make_shared<ReferenceWeight>(weight.cols, std::move(copies));
  return weight;
}

}  // namespace pagoda::reference
