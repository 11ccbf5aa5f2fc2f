// ggml's numbers for the types that WeightFormat knows.
#pragma once

#include <cstdint>
#include <optional>

#include "quant/weight_format.h"

namespace pagoda {

// Returns the format of a type by its number; absent: a type that nothing here reads.
std::optional<WeightFormat> gguf_weight_format(std::uint32_t type_id);

// Returns the number of a format; absent for kAffine, which GGUF does not have.
std::optional<std::uint32_t> gguf_type_id(WeightFormat format);

}  // namespace pagoda
