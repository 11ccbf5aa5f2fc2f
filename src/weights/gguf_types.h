// Facts that reading and writing GGUF share: ggml's numbers for the types that WeightFormat knows,
// and where aligned data begins.
#pragma once

#include <cstdint>
#include <optional>

#include "quant/weight_format.h"

namespace pagoda {

// Returns the format of a type by its number; absent: a type that nothing here reads.
std::optional<WeightFormat> gguf_weight_format(std::uint32_t type_id);

// Returns the number of a format; absent for kAffine, which GGUF does not have.
std::optional<std::uint32_t> gguf_type_id(WeightFormat format);

// Returns the least multiple of `alignment`, which is not 0, from n on.
inline std::uint64_t align_up(std::uint64_t n, std::uint64_t alignment) {
  return (n + alignment - 1) / alignment * alignment;
}

}  // namespace pagoda
