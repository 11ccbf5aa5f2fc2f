#include "backend/mlx/mlx_weight.h"

#include <cstring>

#include "backend/mlx/mlx_exec.h"
#include "quant/q4_0.h"
#include "quant/q4_1.h"
#include "quant/q8_0.h"

namespace pagoda::mlx {
namespace {

constexpr int kGroupSize = WeightSegment::kGroupSize;
static_assert(BlockQ4_0::kValues == kGroupSize && BlockQ4_1::kValues == kGroupSize &&
              BlockQ8_0::kValues == kGroupSize);

// What decides whether two parts can lie in one array.
struct Layout {
  mx::Dtype dtype;
  int bits;
  bool operator==(const Layout&) const = default;
};

Layout layout_of(WeightFormat format) {
  switch (format) {
    case WeightFormat::kF32:
      return {mx::float32, 0};
    case WeightFormat::kF16:
      return {mx::float16, 0};
    case WeightFormat::kBF16:
      return {mx::bfloat16, 0};
    case WeightFormat::kQ4_0:
    case WeightFormat::kQ4_1:
      return {mx::uint32, 4};
    case WeightFormat::kQ8_0:
      return {mx::uint32, 8};
    default:
      break;
  }
  return {mx::float32, 0};
}

mx::array new_array(std::int64_t rows, std::int64_t cols, mx::Dtype dtype) {
  const mx::Shape shape = to_mlx(Shape{rows, cols});
  return mx::array(
      mx::allocator::malloc(static_cast<std::size_t>(rows * cols) * mx::size_of(dtype)), shape,
      dtype);
}

// One group's place in a segment.
struct Group {
  std::uint8_t* values;
  float* scale;
  float* bias;
};

// From ggml's order (i and i + 16 share a byte) to MLX's (2 i and 2 i + 1 do).
void repack_nibbles(const std::uint8_t* nibbles, std::uint8_t* values) {
  constexpr int kHalf = kGroupSize / 2;
  for (int i = 0; i < kHalf / 2; ++i) {
    const int a = nibbles[2 * i];
    const int b = nibbles[2 * i + 1];
    values[i] = static_cast<std::uint8_t>((a & 15) | (b & 15) << 4);
    values[i + kHalf / 2] = static_cast<std::uint8_t>(a >> 4 | (b >> 4) << 4);
  }
}

void repack(const BlockQ4_0& block, const Group& group) {
  repack_nibbles(block.nibbles, group.values);
  *group.scale = to_float(block.scale);
  *group.bias = -8 * *group.scale;
}

void repack(const BlockQ4_1& block, const Group& group) {
  repack_nibbles(block.nibbles, group.values);
  *group.scale = to_float(block.scale);
  *group.bias = to_float(block.minimum);
}

void repack(const BlockQ8_0& block, const Group& group) {
  for (int i = 0; i < kGroupSize; ++i)
    group.values[i] = static_cast<std::uint8_t>(block.q[i] + 128);
  *group.scale = to_float(block.scale);
  *group.bias = -128 * *group.scale;
}

template <typename Block>
void repack_blocks(std::span<const std::byte> bytes, const Group& first, int bytes_per_group) {
  const std::size_t num_blocks = bytes.size() / sizeof(Block);
  for (std::size_t i = 0; i < num_blocks; ++i) {
    Block block;
    std::memcpy(&block, bytes.data() + i * sizeof(Block), sizeof(Block));
    repack(block, {first.values + i * bytes_per_group, first.scale + i, first.bias + i});
  }
}

// Writes `part` into the segment from row `row` on.
void pack_part(const HostTensor& part, std::int64_t row, WeightSegment& segment) {
  const std::int64_t cols = part.shape[1];
  auto* values = segment.values.data<std::uint8_t>();
  if (segment.bits == 0) {
    const std::size_t row_bytes = static_cast<std::size_t>(cols) * segment.values.itemsize();
    if (!part.bytes.empty())
      std::memcpy(values + row * row_bytes, part.bytes.data(), part.bytes.size());
    return;
  }
  const std::int64_t groups = row * (cols / kGroupSize);
  const int bytes_per_group = kGroupSize * segment.bits / 8;
  const Group first{values + groups * bytes_per_group, segment.scales->data<float>() + groups,
                    segment.biases->data<float>() + groups};
  if (part.format == WeightFormat::kQ4_0)
    repack_blocks<BlockQ4_0>(part.bytes, first, bytes_per_group);
  if (part.format == WeightFormat::kQ4_1)
    repack_blocks<BlockQ4_1>(part.bytes, first, bytes_per_group);
  if (part.format == WeightFormat::kQ8_0)
    repack_blocks<BlockQ8_0>(part.bytes, first, bytes_per_group);
}

// One segment of parts that share a layout.
WeightSegment pack_segment(std::span<const HostTensor> parts) {
  const Layout layout = layout_of(parts[0].format);
  const std::int64_t cols = parts[0].shape[1];
  std::int64_t rows = 0;
  for (const HostTensor& part : parts) rows += part.shape[0];
  const std::int64_t words = layout.bits == 0 ? cols : cols * layout.bits / 32;
  WeightSegment segment{.rows = rows,
                        .bits = layout.bits,
                        .values = new_array(rows, words, layout.dtype),
                        .scales = std::nullopt,
                        .biases = std::nullopt};
  if (layout.bits != 0) {
    segment.scales = new_array(rows, cols / kGroupSize, mx::float32);
    segment.biases = new_array(rows, cols / kGroupSize, mx::float32);
  }
  std::int64_t row = 0;
  for (const HostTensor& part : parts) {
    pack_part(part, row, segment);
    if (part.storage) part.storage->release_pages(part.bytes);
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

Result<Weight> prepare_weight(Exec& exec, std::span<const HostTensor> parts) {
  auto packed = std::make_shared<MlxWeight>();
  Weight weight{.rows = 0, .cols = parts[0].shape[1], .packed = nullptr};
  for (const HostTensor& part : parts) {
    if (part.format > WeightFormat::kQ4_1) {
      return unsupported("[weight] tensor {}: {} is not packed by the mlx backend", part.name,
                         traits_of(part.format).name);
    }
  }
  try {
    for (std::size_t begin = 0; begin < parts.size();) {
      std::size_t end = begin + 1;
      while (end < parts.size() && layout_of(parts[end].format) == layout_of(parts[begin].format))
        ++end;
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
