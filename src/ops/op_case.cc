#include "ops/op_case.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <type_traits>

#include "quant/owned_bytes.h"
#include "quant/q2_k.h"
#include "quant/q3_k.h"
#include "quant/q4_k.h"
#include "quant/q6_k.h"

namespace pagoda {
namespace {

template <typename T>
std::vector<T> rounded(std::span<const float> values) {
  std::vector<T> result;
  result.reserve(values.size());
  for (const float value : values) result.push_back(from_float<T>(value));
  return result;
}

template <typename T>
std::vector<float> widened(std::span<const std::byte> bytes) {
  std::vector<float> values(bytes.size() / sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    T stored;
    std::memcpy(&stored, bytes.data() + i * sizeof(T), sizeof(T));
    if constexpr (std::is_integral_v<T>) {
      values[i] = static_cast<float>(stored);  // exact below 2^24
    } else {
      const float value = to_float(stored);
      // A token that may not be drawn has -infinity, which could not be subtracted.
      values[i] = std::max(value, std::numeric_limits<float>::lowest());
    }
  }
  return values;
}

std::vector<float> widened(DType dtype, std::span<const std::byte> bytes) {
  switch (dtype) {
    case DType::kFloat32:
      return widened<float>(bytes);
    case DType::kBFloat16:
      return widened<bf16>(bytes);
    case DType::kFloat16:
      return widened<f16>(bytes);
    case DType::kInt32:
      return widened<std::int32_t>(bytes);
    case DType::kInt8:
      return widened<std::int8_t>(bytes);
    case DType::kUInt8:
      return widened<std::uint8_t>(bytes);
  }
  return {};
}

void put_f16(std::byte* at, float value) {
  const f16 stored = to_f16(value);
  std::memcpy(at, &stored, sizeof(stored));
}

// A block's random numbers: a magnitude of about 1, a sign (1 or -1), and a value in [-1, 1).
struct BlockNumbers {
  float unit;
  float sign;
  float value;
};

void put_plain(WeightFormat format, std::byte* at, float value) {
  if (format == WeightFormat::kF32) std::memcpy(at, &value, sizeof(value));
  if (format == WeightFormat::kF16) put_f16(at, value);
  const bf16 stored = to_bf16(value);
  if (format == WeightFormat::kBF16) std::memcpy(at, &stored, sizeof(stored));
}

// Sets scale and minimum of a block of random bytes so that it decodes to sensible numbers. Their
// largest magnitude is about 1; formats with a minimum decode to about -1 to 1.
void put_scales(WeightFormat format, std::byte* block, const BlockNumbers& numbers) {
  const auto [unit, sign, value] = numbers;
  switch (format) {
    case WeightFormat::kF32:
    case WeightFormat::kF16:
    case WeightFormat::kBF16:
      return put_plain(format, block, value);
    case WeightFormat::kQ8_0:
    case WeightFormat::kIQ4_NL:
      return put_f16(block, (format == WeightFormat::kQ8_0 ? 1.0f : sign) * unit / 128);
    case WeightFormat::kQ4_0:
      return put_f16(block, sign * unit / 8);
    case WeightFormat::kQ5_0:
      return put_f16(block, sign * unit / 16);
    case WeightFormat::kQ4_1:
    case WeightFormat::kQ5_1:
      put_f16(block, unit / (format == WeightFormat::kQ4_1 ? 8 : 16));
      return put_f16(block + 2, -unit + value / 16);
    case WeightFormat::kQ2_K:
      put_f16(block + offsetof(BlockQ2_K, scale), unit * 2 / (3 * 15));
      return put_f16(block + offsetof(BlockQ2_K, minimum_scale), unit / 15);
    case WeightFormat::kQ3_K:
      return put_f16(block + offsetof(BlockQ3_K, scale), sign * unit / (4 * 32));
    case WeightFormat::kQ4_K:
    case WeightFormat::kQ5_K:
      put_f16(block, unit * 2 / ((format == WeightFormat::kQ4_K ? 15 : 31) * 63));
      return put_f16(block + offsetof(BlockQ4_K, minimum_scale), unit / 63);
    case WeightFormat::kQ6_K:
      return put_f16(block + offsetof(BlockQ6_K, scale), sign * unit / (32 * 128));
    case WeightFormat::kIQ4_XS:
      return put_f16(block, sign * unit / (128 * 32));
    case WeightFormat::kMXFP4:
      *block = static_cast<std::byte>(numbers.sign > 0 ? 124 : 125);
      return;
    case WeightFormat::kAffine:
      break;
  }
  PAGODA_CHECK(false, "[op_case] affine groups are no blocks");
}

BlockNumbers draw_numbers(std::mt19937& random) {
  const float unit = 0.5f + static_cast<float>(random() % 1024) / 1024.0f;
  const float sign = random() % 2 ? 1.0f : -1.0f;
  const float value = static_cast<float>(static_cast<int>(random() % 2048) - 1024) / 1024.0f;
  return {.unit = unit, .sign = sign, .value = value};
}

void fill_random(std::mt19937& random, std::span<std::byte> bytes) {
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() & 0xff);
}

void fill_block(std::mt19937& random, WeightFormat format, std::byte* block, int block_bytes) {
  fill_random(random, {block, static_cast<std::size_t>(block_bytes)});
  put_scales(format, block, draw_numbers(random));
}

// Makes codes, scales and biases, one after the other in one storage. A group's values range from
// about -1 to 1, and rise or fall with the code.
HostTensor random_affine_matrix(std::uint32_t seed, const AffineLayout& layout, std::int64_t rows,
                                std::int64_t cols) {
  const auto code_bytes = static_cast<std::size_t>(rows * affine_code_bytes(layout, cols));
  const auto scale_bytes = static_cast<std::size_t>(rows * affine_scale_bytes(layout, cols));
  auto storage = std::make_shared<OwnedBytes>(code_bytes + 2 * scale_bytes);
  const std::span<std::byte> bytes(storage->bytes);
  std::mt19937 random(seed);
  fill_random(random, bytes.first(code_bytes));
  std::byte* scales = bytes.data() + code_bytes;
  const auto number_bytes = static_cast<std::size_t>(traits_of(layout.scale_format).block_bytes);
  for (std::size_t at = 0; at < scale_bytes; at += number_bytes) {
    const auto [unit, sign, value] = draw_numbers(random);
    const float steps = static_cast<float>((1 << layout.bits) - 1);
    put_plain(layout.scale_format, scales + at, sign * unit * 2 / steps);
    put_plain(layout.scale_format, scales + scale_bytes + at, -sign * unit + value / 16);
  }
  return {.name = "random",
          .format = WeightFormat::kAffine,
          .shape = {rows, cols},
          .bytes = bytes.first(code_bytes),
          .storage = storage,
          .affine = AffineGroups{.layout = layout,
                                 .scales = bytes.subspan(code_bytes, scale_bytes),
                                 .biases = bytes.subspan(code_bytes + scale_bytes),
                                 .scales_storage = storage,
                                 .biases_storage = storage}};
}

}  // namespace

float CaseTolerance::of(Backend backend) const {
  switch (backend) {
    case Backend::kReference:
      return 0;
    case Backend::kCpu:
      return cpu;
    case Backend::kMlx:
      return mlx;
    case Backend::kCuda:
      return cuda;
  }
  return 0;
}

Result<std::vector<std::vector<float>>> run_case(Exec& exec, const OpCase& op_case,
                                                 std::span<const int> tokens) {
  PAGODA_ASSIGN_OR_RETURN(const CaseRun run, op_case.prepare(exec, tokens));
  const std::vector<Tensor> outputs = run();
  PAGODA_RETURN_IF_ERROR(exec.evaluate(outputs));
  std::vector<std::vector<float>> values;
  for (const Tensor& output : outputs) {
    PAGODA_ASSIGN_OR_RETURN(const std::span<const std::byte> bytes, exec.read(output));
    values.push_back(widened(output.dtype(), bytes));
  }
  return values;
}

std::vector<int> all_tokens(const OpCase& op_case) {
  std::vector<int> tokens(op_case.num_tokens);
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

std::vector<float> random_values(std::uint32_t seed, std::int64_t count, float magnitude) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values) {
    const float unit = static_cast<float>(random() >> 8) * 0x1p-23f - 1.0f;  // [-1, 1)
    value = to_float(to_bf16(unit * magnitude));
  }
  return values;
}

std::string name_of(const CaseFormat& format) {
  if (format.format != WeightFormat::kAffine) return std::string(traits_of(format.format).name);
  return fmt::format("affine {}-bit, groups of {}, {}", format.affine.bits,
                     format.affine.group_size, traits_of(format.affine.scale_format).name);
}

std::int64_t packed_bytes(const CaseFormat& format, std::int64_t num_values) {
  if (format.format != WeightFormat::kAffine) return packed_bytes(format.format, num_values);
  return affine_code_bytes(format.affine, num_values) +
         2 * affine_scale_bytes(format.affine, num_values);
}

HostTensor random_matrix(std::uint32_t seed, const CaseFormat& format, std::int64_t rows,
                         std::int64_t cols) {
  if (format.format == WeightFormat::kAffine) {
    return random_affine_matrix(seed, format.affine, rows, cols);
  }
  const int block_bytes = traits_of(format.format).block_bytes;
  const auto size = static_cast<std::size_t>(packed_bytes(format, rows * cols));
  auto storage = std::make_shared<OwnedBytes>(size);
  std::mt19937 random(seed);
  for (std::size_t i = 0; i < size; i += block_bytes) {
    fill_block(random, format.format, storage->bytes.data() + i, block_bytes);
  }
  HostTensor matrix{
      .name = "random", .format = format.format, .shape = {rows, cols}, .bytes = {}, .storage = {}};
  matrix.bytes = storage->bytes;
  matrix.storage = std::move(storage);
  return matrix;
}

std::vector<float> take_rows(std::span<const float> values, std::int64_t width,
                             std::span<const int> rows) {
  std::vector<float> taken;
  taken.reserve(rows.size() * width);
  for (const int row : rows) {
    const auto begin = values.begin() + row * width;
    taken.insert(taken.end(), begin, begin + width);
  }
  return taken;
}

std::vector<std::vector<float>> select_outputs(const OpCase& op_case,
                                               const std::vector<std::vector<float>>& all,
                                               std::span<const int> tokens) {
  if (!op_case.rows_are_tokens) return all;
  std::vector<std::vector<float>> selected;
  for (const std::vector<float>& output : all) {
    const auto width = static_cast<std::int64_t>(output.size()) / op_case.num_tokens;
    selected.push_back(take_rows(output, width, tokens));
  }
  return selected;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

float relative_error(std::span<const float> actual, std::span<const float> expected) {
  float largest = 0, error = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const float difference = std::fabs(actual[i] - expected[i]);
    if (!(difference <= std::numeric_limits<float>::max())) return difference;  // NaN, infinity
    error = std::max(error, difference);
    largest = std::max(largest, std::fabs(expected[i]));
  }
  return error == 0 ? 0 : error / largest;
}

DType activation_dtype(const Exec& exec) {
  return traits_of(exec.backend()).activation_dtype;
}

Tensor upload_activations(Exec& exec, std::span<const float> values, const Shape& shape) {
  return upload_as(exec, activation_dtype(exec), values, shape);
}

Tensor upload_as(Exec& exec, DType dtype, std::span<const float> values, const Shape& shape) {
  switch (dtype) {
    case DType::kFloat32:
      return exec.upload<float>(values, shape);
    case DType::kBFloat16:
      return exec.upload<bf16>(rounded<bf16>(values), shape);
    case DType::kFloat16:
      return exec.upload<f16>(rounded<f16>(values), shape);
    default:
      break;
  }
  PAGODA_CHECK(false, "[op_case] expected a floating type");
  return {};
}

}  // namespace pagoda
