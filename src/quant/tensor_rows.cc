#include "quant/tensor_rows.h"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "quant/block_numbers.h"
#include "quant/mxfp4.h"
#include "quant/owned_bytes.h"

namespace pagoda {
namespace {

std::int64_t width_of(const HostTensor& tensor) {
  return tensor.shape.rank() == 2 ? tensor.shape[1] : 1;
}

template <typename Byte>
std::span<Byte> row_of(std::span<Byte> bytes, std::int64_t row, std::int64_t row_bytes) {
  return bytes.subspan(static_cast<std::size_t>(row * row_bytes),
                       static_cast<std::size_t>(row_bytes));
}

// The exponents of MXFP4's normal powers. 255 stands for no number in the format's standard.
constexpr int kLeastMxfp4 = 2;
constexpr int kMostMxfp4 = 254;

// Finds the exponents that are exact for numbers of a plain format.
class NumberExtremes {
 public:
  void add(float number) {
    const float magnitude = std::fabs(number);
    largest_ = std::max(largest_, std::bit_cast<std::uint32_t>(magnitude));  // NaN is above all
    if (magnitude > 0) smallest_ = std::min(smallest_, magnitude);
    // All float16 numbers are multiples of 2^-24. For other formats bits_ is not read.
    if (magnitude < 65536) bits_ |= static_cast<std::uint64_t>(magnitude * 0x1p24f);
  }

  ExponentRange range(WeightFormat format) const {
    const float largest = std::bit_cast<float>(largest_);
    ExponentRange range;
    if (largest == 0) return range;
    if (!std::isfinite(largest)) return {.least = 0, .most = 0};
    const bool is_f16 = format == WeightFormat::kF16;
    const int room_above = (is_f16 ? 15 : 127) - std::ilogb(largest);
    const int room_below = is_f16 ? std::countr_zero(bits_) : std::ilogb(smallest_) + 126;
    range.intersect({.least = std::min(-room_below, 0), .most = std::max(room_above, 0)});
    return range;
  }

 private:
  std::uint32_t largest_ = 0;
  float smallest_ = std::numeric_limits<float>::infinity();
  std::uint64_t bits_ = 0;
};

// Calls visit(format, bytes) for the numbers of each block of a row that is not affine.
template <typename Byte, typename Visit>
void for_numbers(WeightFormat format, std::span<Byte> row, const Visit& visit) {
  const BlockNumbers numbers = block_numbers(format);
  const auto block_bytes = static_cast<std::size_t>(traits_of(format).block_bytes);
  const auto number_bytes = static_cast<std::size_t>(traits_of(numbers.format).block_bytes);
  if (traits_of(format).block_size == 1) return visit(numbers.format, row);
  for (std::size_t at = 0; at < row.size(); at += block_bytes)
    visit(numbers.format, row.subspan(at + numbers.offset, numbers.count * number_bytes));
}

// The most numbers that are decoded at once.
constexpr std::size_t kAtOnce = 256;

ExponentRange range_of(WeightFormat format, std::span<const std::byte> numbers) {
  const auto number_bytes = static_cast<std::size_t>(traits_of(format).block_bytes);
  NumberExtremes extremes;
  float values[kAtOnce];
  while (!numbers.empty()) {
    const std::size_t count = std::min(numbers.size() / number_bytes, kAtOnce);
    traits_of(format).dequantize(numbers.first(count * number_bytes), values);
    for (const float value : std::span(values, count)) extremes.add(value);
    numbers = numbers.subspan(count * number_bytes);
  }
  return extremes.range(format);
}

void scale(WeightFormat format, std::span<std::byte> numbers, int exponent) {
  const float power = std::ldexp(1.0f, exponent);
  const auto number_bytes = static_cast<std::size_t>(traits_of(format).block_bytes);
  float values[kAtOnce];
  while (!numbers.empty()) {
    const std::size_t count = std::min(numbers.size() / number_bytes, kAtOnce);
    const std::span<std::byte> some = numbers.first(count * number_bytes);
    traits_of(format).dequantize(some, values);
    for (float& value : std::span(values, count)) value *= power;
    traits_of(format).quantize({values, count}, some.data());
    numbers = numbers.subspan(some.size());
  }
}

// Writes the blocks of a row whose scales are stored apart.
void join_blocks(const HostTensor& tensor, std::int64_t row, std::byte* to) {
  constexpr int kHalf = BlockMXFP4::kValues / 2;
  const std::int64_t num_blocks = tensor.shape[-1] / BlockMXFP4::kValues;
  const std::int64_t first = row * tensor.mxfp4->row_step * num_blocks;
  for (std::int64_t b = 0; b < num_blocks; ++b, to += sizeof(BlockMXFP4)) {
    const std::byte* const pairs = tensor.bytes.data() + (first + b) * kHalf;
    const auto element = [&](int i) {
      return std::to_integer<int>(pairs[i / 2]) >> (4 * (i % 2)) & 15;
    };
    to[0] = tensor.mxfp4->scales[static_cast<std::size_t>(first + b)];
    for (int i = 0; i < kHalf; ++i) {
      to[1 + i] = static_cast<std::byte>(element(i) | element(i + kHalf) << 4);
    }
  }
}

// Writes the numbers of a row that has strides.
void gather(const HostTensor& tensor, std::int64_t row, std::byte* to) {
  const auto bytes = static_cast<std::int64_t>(traits_of(tensor.format).block_bytes);
  const std::byte* from = tensor.bytes.data() + row * tensor.strides->row * bytes;
  for (std::int64_t col = 0; col < tensor.shape[1]; ++col, to += bytes) {
    std::memcpy(to, from + col * tensor.strides->col * bytes, static_cast<std::size_t>(bytes));
  }
}

// Multiplies the groups' scales, or their biases, by the powers of two of their rows.
void scale_groups(const HostTensor& tensor, std::span<const int> exponents,
                  std::span<const std::byte>& numbers,
                  std::shared_ptr<const HostStorage>& storage) {
  const AffineLayout& layout = tensor.affine->layout;
  const std::int64_t row_bytes = affine_scale_bytes(layout, tensor.shape[1]);
  auto copy = std::make_shared<OwnedBytes>(numbers);
  for (std::size_t row = 0; row < exponents.size(); ++row) {
    if (exponents[row] == 0) continue;
    scale(layout.scale_format,
          row_of(std::span(copy->bytes), static_cast<std::int64_t>(row), row_bytes),
          exponents[row]);
  }
  numbers = copy->bytes;
  storage = std::move(copy);
}

}  // namespace

std::span<const std::byte> row_bytes(const HostTensor& tensor, std::int64_t row,
                                     std::vector<std::byte>& scratch) {
  const std::int64_t size = packed_bytes(tensor.format, width_of(tensor));
  if (tensor.has_whole_rows()) return row_of(tensor.bytes, row, size);
  scratch.resize(static_cast<std::size_t>(size));
  if (tensor.mxfp4) {
    join_blocks(tensor, row, scratch.data());
  } else {
    gather(tensor, row, scratch.data());
  }
  return scratch;
}

void read_row(const HostTensor& tensor, std::int64_t row, float* values) {
  if (tensor.affine) return dequantize_affine_row(affine_row(tensor, row), values);
  std::vector<std::byte> scratch;
  traits_of(tensor.format).dequantize(row_bytes(tensor, row, scratch), values);
}

ExponentRange exact_exponents(const HostTensor& tensor, std::int64_t row) {
  if (tensor.affine) {
    const AffineRow groups = affine_row(tensor, row);
    ExponentRange range = range_of(groups.layout.scale_format, groups.scales);
    range.intersect(range_of(groups.layout.scale_format, groups.biases));
    return range;
  }
  const std::int64_t width = width_of(tensor);
  if (width % traits_of(tensor.format).block_size != 0 || !tensor.has_whole_rows())
    return {.least = 0, .most = 0};
  ExponentRange range;
  const std::span<const std::byte> bytes =
      row_of(tensor.bytes, row, packed_bytes(tensor.format, width));
  if (tensor.format == WeightFormat::kMXFP4) {
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(BlockMXFP4)) {
      const int exponent = std::to_integer<int>(bytes[at]);
      range.intersect({.least = std::min(kLeastMxfp4 - exponent, 0),
                       .most = std::max(kMostMxfp4 - exponent, 0)});
    }
    return range;
  }
  for_numbers(tensor.format, bytes, [&](WeightFormat format, std::span<const std::byte> numbers) {
    range.intersect(range_of(format, numbers));
  });
  return range;
}

HostTensor scale_rows(const HostTensor& tensor, std::span<const int> exponents) {
  HostTensor scaled = tensor;
  if (tensor.affine) {
    AffineGroups& groups = *scaled.affine;
    scale_groups(tensor, exponents, groups.scales, groups.scales_storage);
    scale_groups(tensor, exponents, groups.biases, groups.biases_storage);
    return scaled;
  }
  auto copy = std::make_shared<OwnedBytes>(tensor.bytes);
  const std::int64_t row_bytes = packed_bytes(tensor.format, width_of(tensor));
  for (std::size_t row = 0; row < exponents.size(); ++row) {
    if (exponents[row] == 0) continue;
    const std::span<std::byte> bytes =
        row_of(std::span(copy->bytes), static_cast<std::int64_t>(row), row_bytes);
    if (tensor.format == WeightFormat::kMXFP4) {
      for (std::size_t at = 0; at < bytes.size(); at += sizeof(BlockMXFP4)) {
        bytes[at] = static_cast<std::byte>(std::to_integer<int>(bytes[at]) + exponents[row]);
      }
      continue;
    }
    for_numbers(tensor.format, bytes, [&](WeightFormat format, std::span<std::byte> numbers) {
      scale(format, numbers, exponents[row]);
    });
  }
  scaled.bytes = copy->bytes;
  scaled.storage = std::move(copy);
  return scaled;
}

HostTensor rows_in_turn(const HostTensor& tensor, std::int64_t first, std::int64_t step) {
  const std::int64_t rows = tensor.shape[0];
  PAGODA_CHECK(tensor.mxfp4 && tensor.mxfp4->row_step == 1 && rows % step == 0 && first < step,
               "[tensor_rows] rows that do not take turns");
  const auto part = [&](std::span<const std::byte> bytes) {
    const std::size_t row_bytes = bytes.size() / static_cast<std::size_t>(rows);
    const std::size_t last = static_cast<std::size_t>(rows - step + first);
    return bytes.subspan(static_cast<std::size_t>(first) * row_bytes,
                         (last - static_cast<std::size_t>(first) + 1) * row_bytes);
  };
  HostTensor turn = tensor;
  turn.shape = {rows / step, tensor.shape[1]};
  turn.bytes = part(tensor.bytes);
  turn.mxfp4->scales = part(tensor.mxfp4->scales);
  turn.mxfp4->row_step = step;
  return turn;
}

HostTensor slice_rows(const HostTensor& tensor, std::int64_t first, std::int64_t count) {
  PAGODA_CHECK(!tensor.strides, "[tensor_rows] a slice of a tensor with strides");
  const std::int64_t rows = tensor.shape[0];
  PAGODA_CHECK(first >= 0 && count >= 0 && first + count <= rows,
               "[tensor_rows] rows that a tensor has not");
  const auto part = [&](std::span<const std::byte> bytes) {
    const std::size_t row_bytes = bytes.size() / static_cast<std::size_t>(rows);
    return bytes.subspan(static_cast<std::size_t>(first) * row_bytes,
                         static_cast<std::size_t>(count) * row_bytes);
  };
  HostTensor slice = tensor;
  slice.shape = tensor.shape.rank() == 1 ? Shape{count} : Shape{count, tensor.shape[1]};
  slice.bytes = part(tensor.bytes);
  if (slice.affine) {
    slice.affine->scales = part(tensor.affine->scales);
    slice.affine->biases = part(tensor.affine->biases);
  }
  if (slice.mxfp4) {
    PAGODA_CHECK(slice.mxfp4->row_step == 1, "[tensor_rows] a slice of rows in turn");
    slice.mxfp4->scales = part(tensor.mxfp4->scales);
  }
  return slice;
}

}  // namespace pagoda
