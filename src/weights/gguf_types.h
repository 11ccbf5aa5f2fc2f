// Facts that reading and writing GGUF share: ggml's numbers for the types that WeightFormat knows,
// and where aligned data begins.
#pragma once

#include <cstdint>
#include <optional>

#include "quant/weight_format.h"

namespace pagoda {

// Returns the format of a type by ggml's number; absent if nothing here reads the type.
std::optional<WeightFormat> gguf_weight_format(std::uint32_t type_id);

// Returns ggml's number of a format; absent for kAffine, which GGUF does not have.
std::optional<std::uint32_t> gguf_type_id(WeightFormat format);

// Returns the least multiple of `alignment` that is not below n. REQUIRES: alignment is not 0.
inline std::uint64_t align_up(std::uint64_t n, std::uint64_t alignment) {
  return (n + alignment - 1) / alignment * alignment;
}

}  // namespace pagoda
