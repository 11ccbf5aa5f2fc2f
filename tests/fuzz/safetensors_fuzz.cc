// Any bytes as a safetensors file, and the same bytes as an index.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "weights/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pagoda;
  (void)parse_safetensors_index({reinterpret_cast<const char*>(data), size});
  const auto tensors = parse_safetensors(std::as_bytes(std::span(data, size)), nullptr);
  if (!tensors.ok()) return 0;
  for (const StoredTensor& stored : *tensors) {
    if (!stored.unsupported.empty()) continue;
    const HostTensor& tensor = stored.tensor;
    PAGODA_CHECK(packed_bytes(tensor.format, tensor.shape.num_elements()) ==
                     static_cast<std::int64_t>(tensor.bytes.size()),
                 "the bytes are those of the shape");
    std::vector<float> values(static_cast<std::size_t>(tensor.shape.num_elements()));
    traits_of(tensor.format).dequantize(tensor.bytes, values.data());
  }
  return 0;
}
