#include "quant/weight_format.h"

#include <iterator>

#include "core/check.h"
#include "quant/plain.h"
#include "quant/q4_0.h"
#include "quant/q4_1.h"
#include "quant/q8_0.h"

namespace pagoda {
namespace {

void no_codec(std::span<const std::byte>, float*) {
  PAGODA_CHECK(false, "[quant] affine groups are decoded by dequantize_affine_row");
}

}  // namespace

const WeightFormatTraits& traits_of(WeightFormat format) {
  static constexpr WeightFormatTraits kTraits[] = {
      {"F32", 1, 4, dequantize_f32},
      {"F16", 1, 2, dequantize_f16},
      {"BF16", 1, 2, dequantize_bf16},
      {"Q8_0", BlockQ8_0::kValues, sizeof(BlockQ8_0), dequantize_q8_0},
      {"Q4_0", BlockQ4_0::kValues, sizeof(BlockQ4_0), dequantize_q4_0},
      {"Q4_1", BlockQ4_1::kValues, sizeof(BlockQ4_1), dequantize_q4_1},
      {"affine", 1, 0, no_codec},
  };
  static_assert(static_cast<int>(WeightFormat::kAffine) + 1 == std::size(kTraits));
  return kTraits[static_cast<int>(format)];
}

}  // namespace pagoda
