#include "quant/block_numbers.h"

#include "core/check.h"
#include "quant/iq4_nl.h"
#include "quant/iq4_xs.h"
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

template <typename Block>
constexpr BlockNumbers numbers_of_block() {
  const std::size_t offset = offsetof(Block, scale);
  if constexpr (requires { &Block::minimum; }) {
    static_assert(offsetof(Block, minimum) == offsetof(Block, scale) + sizeof(f16));
    return {.offset = offset, .count = 2};
  } else if constexpr (requires { &Block::minimum_scale; }) {
    static_assert(offsetof(Block, minimum_scale) == offsetof(Block, scale) + sizeof(f16));
    return {.offset = offset, .count = 2};
  } else {
    return {.offset = offset};
  }
}

}  // namespace

BlockNumbers block_numbers(WeightFormat format) {
  switch (format) {
    case WeightFormat::kF32:
    case WeightFormat::kF16:
    case WeightFormat::kBF16:
      return {.format = format};
    case WeightFormat::kQ8_0:
      return numbers_of_block<BlockQ8_0>();
    case WeightFormat::kQ4_0:
      return numbers_of_block<BlockQ4_0>();
    case WeightFormat::kQ4_1:
      return numbers_of_block<BlockQ4_1>();
    case WeightFormat::kQ5_0:
      return numbers_of_block<BlockQ5_0>();
    case WeightFormat::kQ5_1:
      return numbers_of_block<BlockQ5_1>();
    case WeightFormat::kQ2_K:
      return numbers_of_block<BlockQ2_K>();
    case WeightFormat::kQ3_K:
      return numbers_of_block<BlockQ3_K>();
    case WeightFormat::kQ4_K:
      return numbers_of_block<BlockQ4_K>();
    case WeightFormat::kQ5_K:
      return numbers_of_block<BlockQ5_K>();
    case WeightFormat::kQ6_K:
      return numbers_of_block<BlockQ6_K>();
    case WeightFormat::kIQ4_NL:
      return numbers_of_block<BlockIQ4_NL>();
    case WeightFormat::kIQ4_XS:
      return numbers_of_block<BlockIQ4_XS>();
    case WeightFormat::kMXFP4:
    case WeightFormat::kAffine:
      break;
  }
  PAGODA_CHECK(false, "[quant] a format whose blocks have no numbers of a plain format");
  return {};
}

}  // namespace pagoda
