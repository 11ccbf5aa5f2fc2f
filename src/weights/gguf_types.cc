#include "weights/gguf_types.h"

namespace pagoda {
namespace {

struct TypePair {
  std::uint32_t type_id;
  WeightFormat format;
};

constexpr TypePair kTypes[] = {
    {0, WeightFormat::kF32},    {1, WeightFormat::kF16},     {30, WeightFormat::kBF16},
    {2, WeightFormat::kQ4_0},   {3, WeightFormat::kQ4_1},    {6, WeightFormat::kQ5_0},
    {7, WeightFormat::kQ5_1},   {8, WeightFormat::kQ8_0},    {10, WeightFormat::kQ2_K},
    {11, WeightFormat::kQ3_K},  {12, WeightFormat::kQ4_K},   {13, WeightFormat::kQ5_K},
    {14, WeightFormat::kQ6_K},  {20, WeightFormat::kIQ4_NL}, {23, WeightFormat::kIQ4_XS},
    {39, WeightFormat::kMXFP4},
};

}  // namespace

std::optional<WeightFormat> gguf_weight_format(std::uint32_t type_id) {
  for (const TypePair& type : kTypes) {
    if (type.type_id == type_id) return type.format;
  }
  return std::nullopt;
}

std::optional<std::uint32_t> gguf_type_id(WeightFormat format) {
  for (const TypePair& type : kTypes) {
    if (type.format == format) return type.type_id;
  }
  return std::nullopt;
}

}  // namespace pagoda
