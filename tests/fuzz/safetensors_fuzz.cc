// Any bytes as a safetensors file, whose affine groups are joined into matrices, and the same bytes
// as an index.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weights/affine_tensor.h"
#include "weights/safetensors.h"

namespace pagoda {
namespace {

void read_plain(const HostTensor& tensor) {
  PAGODA_CHECK(packed_bytes(tensor.format, tensor.shape.num_elements()) ==
                   static_cast<std::int64_t>(tensor.bytes.size()),
               "the bytes are those of the shape");
  std::vector<float> values(static_cast<std::size_t>(tensor.shape.num_elements()));
  traits_of(tensor.format).dequantize(tensor.bytes, values.data());
}

const StoredTensor* find(const std::vector<StoredTensor>& tensors, const std::string& name) {
  for (const StoredTensor& stored : tensors) {
    if (stored.tensor.name == name) return &stored;
  }
  return nullptr;
}

void read_affine(const std::vector<StoredTensor>& tensors, const StoredTensor& codes) {
  const std::string& name = codes.tensor.name;
  const std::string module = name.substr(0, name.rfind('.'));
  const AffineParts parts{.codes = &codes,
                          .scales = find(tensors, module + ".scales"),
                          .biases = find(tensors, module + ".biases")};
  const auto matrix = join_affine(parts, {.widths = {.bits = 4, .group_size = 32}, .modules = {}});
  if (!matrix.ok()) return;
  std::vector<float> row(static_cast<std::size_t>(matrix->shape[1]));
  for (std::int64_t i = 0; i < matrix->shape[0]; ++i) {
    dequantize_affine_row(affine_row(*matrix, i), row.data());
  }
}

}  // namespace
}  // namespace pagoda

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pagoda;
  (void)parse_safetensors_index({reinterpret_cast<const char*>(data), size});
  const auto tensors = parse_safetensors(std::as_bytes(std::span(data, size)), nullptr);
  if (!tensors.ok()) return 0;
  for (const StoredTensor& stored : *tensors) {
    if (stored.is_words) read_affine(*tensors, stored);
    if (stored.unsupported.empty()) read_plain(stored.tensor);
  }
  return 0;
}
