#include "backend/mlx/mlx_weight.h"

#include <cstring>

#include "backend/mlx/mlx_exec.h"
#include "quant/iq4_nl.h"
#include "quant/iq4_xs.h"
#include "quant/q3_k.h"
#include "quant/q4_0.h"
#include "quant/q4_1.h"
#include "quant/q4_k.h"
#include "quant/q5_0.h"
#include "quant/q5_1.h"
#include "quant/q5_k.h"
#include "quant/q8_0.h"

namespace pagoda::mlx {
namespace {

constexpr int kGroupSize = 32;  // of what blocks become

// The properties that decide whether two parts can lie in one array.
struct Layout {
  mx::Dtype dtype;
  int bits;
  int group_size;
  bool operator==(const Layout&) const = default;
};

Layout layout_of(const HostTensor& part) {
  switch (part.format) {
    case WeightFormat::kF32:
      return {mx::float32, 0, 0};
    case WeightFormat::kF16:
      return {mx::float16, 0, 0};
    case WeightFormat::kBF16:
      return {mx::bfloat16, 0, 0};
    case WeightFormat::kQ4_0:
    case WeightFormat::kQ4_1:
    case WeightFormat::kQ4_K:
      return {mx::uint32, 4, kGroupSize};
    case WeightFormat::kQ5_0:
    case WeightFormat::kQ5_1:
    case WeightFormat::kQ5_K:
      return {mx::uint32, 5, kGroupSize};
    case WeightFormat::kQ8_0:
    case WeightFormat::kIQ4_NL:
    case WeightFormat::kIQ4_XS:
    case WeightFormat::kQ3_K:
      return {mx::uint32, 8, kGroupSize};
    case WeightFormat::kQ2_K:
    case WeightFormat::kQ6_K:
      return {mx::float16, 0, 0};
    case WeightFormat::kAffine:
      return {mx::uint32, part.affine->layout.bits, part.affine->layout.group_size};
  }
  return {mx::float32, 0, 0};
}

mx::array new_array(std::int64_t rows, std::int64_t cols, mx::Dtype dtype) {
  const mx::Shape shape = to_mlx(Shape{rows, cols});
  return mx::array(
      mx::allocator::malloc(static_cast<std::size_t>(rows * cols) * mx::size_of(dtype)), shape,
      dtype);
}

// 32 values as MLX reads them.
struct Group {
  std::uint8_t q[kGroupSize];
  float scale;
  float bias;
};

// Each writes a block's groups, in order.
void to_groups(const BlockQ4_0& block, Group* group) {
  group->scale = to_float(block.scale);
  group->bias = -8 * group->scale;
  for (int i = 0; i < kGroupSize; ++i) {
    const int byte = block.nibbles[i % (kGroupSize / 2)];
    group->q[i] = static_cast<std::uint8_t>(i < kGroupSize / 2 ? byte & 15 : byte >> 4);
  }
}

void to_groups(const BlockQ4_1& block, Group* group) {
  group->scale = to_float(block.scale);
  group->bias = to_float(block.minimum);
  for (int i = 0; i < kGroupSize; ++i) {
    const int byte = block.nibbles[i % (kGroupSize / 2)];
    group->q[i] = static_cast<std::uint8_t>(i < kGroupSize / 2 ? byte & 15 : byte >> 4);
  }
}

void to_groups(const BlockQ5_0& block, Group* group) {
  group->scale = to_float(block.scale);
  group->bias = -16 * group->scale;
  for (int i = 0; i < kGroupSize; ++i) group->q[i] = static_cast<std::uint8_t>(block.q(i));
}

void to_groups(const BlockQ5_1& block, Group* group) {
  group->scale = to_float(block.scale);
  group->bias = to_float(block.minimum);
  for (int i = 0; i < kGroupSize; ++i) group->q[i] = static_cast<std::uint8_t>(block.q(i));
}

void to_groups(const BlockQ8_0& block, Group* group) {
  group->scale = to_float(block.scale);
  group->bias = -128 * group->scale;
  for (int i = 0; i < kGroupSize; ++i) group->q[i] = static_cast<std::uint8_t>(block.q[i] + 128);
}

void to_groups(const BlockIQ4_NL& block, Group* group) {
  group->scale = to_float(block.scale);
  group->bias = -128 * group->scale;
  for (int i = 0; i < kGroupSize; ++i) {
    const int byte = block.nibbles[i % (kGroupSize / 2)];
    const int level = kIq4Levels[i < kGroupSize / 2 ? byte & 15 : byte >> 4];
    group->q[i] = static_cast<std::uint8_t>(level + 128);
  }
}

// Q4_K and Q5_K: q under a scale and above a minimum. IQ4_XS: levels under a scale.
template <typename Block>
  requires(Block::kGroupSize == kGroupSize)
void to_groups(const Block& packed, Group* groups) {
  constexpr bool kIsSigned = std::is_same_v<Block, BlockIQ4_XS>;
  SuperBlock block;
  unpack(packed, block);
  for (int i = 0; i < Block::kValues; ++i) {
    groups[i / kGroupSize].q[i % kGroupSize] =
        static_cast<std::uint8_t>(block.q[i] + (kIsSigned ? 128 : 0));
  }
  for (int g = 0; g < Block::kValues / kGroupSize; ++g) {
    const float scale = block.scale * static_cast<float>(block.scales[g]);
    const float minimum = block.minimum_scale * static_cast<float>(block.minima[g]);
    groups[g].scale = scale;
    groups[g].bias = kIsSigned ? -128 * scale : -minimum;
  }
}

void to_groups(const BlockQ3_K& packed, Group* groups) {
  SuperBlock block;
  unpack(packed, block);
  for (int i = 0; i < BlockQ3_K::kValues; ++i) {
    const int value = block.scales[i / BlockQ3_K::kGroupSize] * block.q[i];
    groups[i / kGroupSize].q[i % kGroupSize] = static_cast<std::uint8_t>(value + 124);
  }
  for (int g = 0; g < BlockQ3_K::kValues / kGroupSize; ++g) {
    groups[g].scale = block.scale;
    groups[g].bias = -124 * block.scale;
  }
}

// `bits` of each q, the first lowest.
void put_bits(const Group& group, int bits, std::uint8_t* out) {
  std::uint32_t pending = 0;
  int num_pending = 0;
  for (const std::uint8_t q : group.q) {
    pending |= std::uint32_t{q} << num_pending;
    for (num_pending += bits; num_pending >= 8; num_pending -= 8, pending >>= 8) {
      *out++ = static_cast<std::uint8_t>(pending);
    }
  }
}

// Writes groups from group `first` of the segment on.
template <typename Block>
void pack_blocks(std::span<const std::byte> bytes, std::int64_t first, WeightSegment& segment) {
  constexpr int kGroups = Block::kValues / kGroupSize;
  const int bytes_per_group = kGroupSize * segment.bits / 8;
  auto* values = segment.values.data<std::uint8_t>() + first * bytes_per_group;
  float* scale = segment.scales->data<float>() + first;
  float* bias = segment.biases->data<float>() + first;
  const std::size_t num_blocks = bytes.size() / sizeof(Block);
  for (std::size_t b = 0; b < num_blocks; ++b) {
    Block block;
    std::memcpy(&block, bytes.data() + b * sizeof(Block), sizeof(Block));
    Group groups[kGroups];
    to_groups(block, groups);
    for (const Group& group : groups) {
      put_bits(group, segment.bits, values);
      values += bytes_per_group;
      *scale++ = group.scale;
      *bias++ = group.bias;
    }
  }
}

void pack_groups(const HostTensor& part, std::int64_t first, WeightSegment& segment) {
  switch (part.format) {
    case WeightFormat::kQ8_0:
      return pack_blocks<BlockQ8_0>(part.bytes, first, segment);
    case WeightFormat::kQ4_0:
      return pack_blocks<BlockQ4_0>(part.bytes, first, segment);
    case WeightFormat::kQ4_1:
      return pack_blocks<BlockQ4_1>(part.bytes, first, segment);
    case WeightFormat::kQ5_0:
      return pack_blocks<BlockQ5_0>(part.bytes, first, segment);
    case WeightFormat::kQ5_1:
      return pack_blocks<BlockQ5_1>(part.bytes, first, segment);
    case WeightFormat::kQ3_K:
      return pack_blocks<BlockQ3_K>(part.bytes, first, segment);
    case WeightFormat::kQ4_K:
      return pack_blocks<BlockQ4_K>(part.bytes, first, segment);
    case WeightFormat::kQ5_K:
      return pack_blocks<BlockQ5_K>(part.bytes, first, segment);
    case WeightFormat::kIQ4_NL:
      return pack_blocks<BlockIQ4_NL>(part.bytes, first, segment);
    case WeightFormat::kIQ4_XS:
      return pack_blocks<BlockIQ4_XS>(part.bytes, first, segment);
    default:
      PAGODA_CHECK(false, "[weight] a format without groups");
  }
}

// Blocks that no group can hold, a block at a time.
void decode_to_f16(const HostTensor& part, f16* values) {
  const WeightFormatTraits& traits = traits_of(part.format);
  std::vector<float> decoded(traits.block_size);
  for (std::size_t at = 0; at < part.bytes.size(); at += traits.block_bytes) {
    traits.dequantize(part.bytes.subspan(at, traits.block_bytes), decoded.data());
    for (const float value : decoded) *values++ = to_f16(value);
  }
}

// As the file has them, the numbers widened.
void pack_affine(const HostTensor& part, std::int64_t row, WeightSegment& segment) {
  const AffineGroups& groups = *part.affine;
  const std::int64_t row_bytes = affine_code_bytes(groups.layout, part.shape[1]);
  const std::int64_t first = row * (part.shape[1] / segment.group_size);
  std::memcpy(segment.values.data<std::uint8_t>() + row * row_bytes, part.bytes.data(),
              part.bytes.size());
  const WeightFormatTraits& numbers = traits_of(groups.layout.scale_format);
  numbers.dequantize(groups.scales, segment.scales->data<float>() + first);
  numbers.dequantize(groups.biases, segment.biases->data<float>() + first);
}

// Writes `part` into the segment from row `row` on.
void pack_part(const HostTensor& part, std::int64_t row, WeightSegment& segment) {
  const std::int64_t cols = part.shape[1];
  if (part.format == WeightFormat::kAffine) return pack_affine(part, row, segment);
  if (segment.bits != 0) return pack_groups(part, row * (cols / kGroupSize), segment);
  auto* values = segment.values.data<std::uint8_t>() +
                 static_cast<std::size_t>(row * cols) * segment.values.itemsize();
  if (traits_of(part.format).block_size == 1) {
    if (!part.bytes.empty()) std::memcpy(values, part.bytes.data(), part.bytes.size());
  } else {
    decode_to_f16(part, reinterpret_cast<f16*>(values));
  }
}

// One segment of parts that share a layout.
WeightSegment pack_segment(std::span<const HostTensor> parts) {
  const Layout layout = layout_of(parts[0]);
  const std::int64_t cols = parts[0].shape[1];
  std::int64_t rows = 0;
  for (const HostTensor& part : parts) rows += part.shape[0];
  const std::int64_t words = layout.bits == 0 ? cols : cols * layout.bits / 32;
  WeightSegment segment{.rows = rows,
                        .bits = layout.bits,
                        .group_size = layout.group_size,
                        .values = new_array(rows, words, layout.dtype),
                        .scales = std::nullopt,
                        .biases = std::nullopt};
  if (layout.bits != 0) {
    segment.scales = new_array(rows, cols / layout.group_size, mx::float32);
    segment.biases = new_array(rows, cols / layout.group_size, mx::float32);
  }
  std::int64_t row = 0;
  for (const HostTensor& part : parts) {
    pack_part(part, row, segment);
    release_pages(part);
    row += part.shape[0];
  }
  return segment;
}

}  // namespace

std::int64_t MlxWeight::num_bytes() const {
  std::size_t bytes = 0;
  for (const WeightSegment& segment : segments) {
    bytes += segment.values.nbytes();
    if (segment.scales) bytes += segment.scales->nbytes() + segment.biases->nbytes();
  }
  return static_cast<std::int64_t>(bytes);
}

Result<Weight> prepare_weight(Exec& exec, std::span<const HostTensor> parts, WeightUse) {
  auto packed = std::make_shared<MlxWeight>();
  Weight weight{.rows = 0, .cols = parts[0].shape[1], .packed = nullptr};
  try {
    for (std::size_t begin = 0; begin < parts.size();) {
      std::size_t end = begin + 1;
      while (end < parts.size() && layout_of(parts[end]) == layout_of(parts[begin])) ++end;
      packed->segments.push_back(pack_segment(parts.subspan(begin, end - begin)));
      weight.rows += packed->segments.back().rows;
      begin = end;
    }
  } catch (const std::exception& error) {
    return resource_exhausted("[weight] {}: {}", parts[0].name, error.what());
  }
  weight.packed = std::move(packed);
  return weight;
}

}  // namespace pagoda::mlx
