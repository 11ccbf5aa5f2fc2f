#include "quant/weight_format.h"

#include <iterator>

#include "core/check.h"
#include "quant/iq4_nl.h"
#include "quant/iq4_xs.h"
#include "quant/mxfp4.h"
#include "quant/plain.h"
#include "quant/q2_k.h"
#include "quant/q3_k.h"
#include "quant/q4_0.h"
#include "quant/q4_1.h"
#include "quant/q4_k.h"
#include "quant/q5_0.h"
#include "quant/q5_1.h"
#include "quant/q5_k.h"
#include "quant/q6_k.h"
#include "quant/q8_0.h"

namespace pagoda {
namespace {

void no_codec(std::span<const std::byte>, float*) {
  PAGODA_CHECK(false, "[quant] affine groups are decoded by dequantize_affine_row");
}

}  // namespace

const WeightFormatTraits& traits_of(WeightFormat format) {
  static constexpr WeightFormatTraits kTraits[] = {
      {"F32", 1, 4, dequantize_f32, quantize_f32},
      {"F16", 1, 2, dequantize_f16, quantize_f16},
      {"BF16", 1, 2, dequantize_bf16, quantize_bf16},
      {"Q8_0", BlockQ8_0::kValues, sizeof(BlockQ8_0), dequantize_q8_0, quantize_q8_0},
      {"Q4_0", BlockQ4_0::kValues, sizeof(BlockQ4_0), dequantize_q4_0, quantize_q4_0},
      {"Q4_1", BlockQ4_1::kValues, sizeof(BlockQ4_1), dequantize_q4_1, nullptr},
      {"Q5_0", BlockQ5_0::kValues, sizeof(BlockQ5_0), dequantize_q5_0, quantize_q5_0},
      {"Q5_1", BlockQ5_1::kValues, sizeof(BlockQ5_1), dequantize_q5_1, nullptr},
      {"Q2_K", BlockQ2_K::kValues, sizeof(BlockQ2_K), dequantize_q2_k, nullptr},
      {"Q3_K", BlockQ3_K::kValues, sizeof(BlockQ3_K), dequantize_q3_k, nullptr},
      {"Q4_K", BlockQ4_K::kValues, sizeof(BlockQ4_K), dequantize_q4_k, quantize_q4_k},
      {"Q5_K", BlockQ5_K::kValues, sizeof(BlockQ5_K), dequantize_q5_k, nullptr},
      {"Q6_K", BlockQ6_K::kValues, sizeof(BlockQ6_K), dequantize_q6_k, nullptr},
      {"IQ4_NL", BlockIQ4_NL::kValues, sizeof(BlockIQ4_NL), dequantize_iq4_nl, nullptr},
      {"IQ4_XS", BlockIQ4_XS::kValues, sizeof(BlockIQ4_XS), dequantize_iq4_xs, nullptr},
      {"MXFP4", BlockMXFP4::kValues, sizeof(BlockMXFP4), dequantize_mxfp4, nullptr},
      {"affine", 1, 0, no_codec, nullptr},
  };
  static_assert(std::size(kWeightFormats) + 1 == std::size(kTraits));
  return kTraits[static_cast<int>(format)];
}

}  // namespace pagoda
