// The formats in which a checkpoint stores a tensor's values: plain types, and GGUF's blocks.
//
// A block format packs `block_size` consecutive values of a row (the innermost extent) into
// `block_bytes` bytes. Each has its own file here, with its layout drawn at the head. A scalar
// codec there defines the format: every faster reader is tested against it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace pagoda {

enum class WeightFormat : std::uint8_t {
  kF32,
  kF16,
  kBF16,
  kQ8_0,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kIQ4_NL,
  kIQ4_XS,
  kMXFP4,
  // MLX's groups: codes, scales and biases are three arrays, which HostTensor::affine describes and
  // quant/affine.h decodes. The traits have only the format's name.
  kAffine,
};
// The formats with a codec of their own, in the order of the enumerators.
inline constexpr WeightFormat kWeightFormats[] = {
    WeightFormat::kF32,  WeightFormat::kF16,    WeightFormat::kBF16,   WeightFormat::kQ8_0,
    WeightFormat::kQ4_0, WeightFormat::kQ4_1,   WeightFormat::kQ5_0,   WeightFormat::kQ5_1,
    WeightFormat::kQ2_K, WeightFormat::kQ3_K,   WeightFormat::kQ4_K,   WeightFormat::kQ5_K,
    WeightFormat::kQ6_K, WeightFormat::kIQ4_NL, WeightFormat::kIQ4_XS, WeightFormat::kMXFP4};

struct WeightFormatTraits {
  std::string_view name;  // as GGUF and the command line spell it: "Q4_1"
  int block_size;         // values per block; 1 for plain types
  int block_bytes;
  // Writes blocks.size() / block_bytes * block_size values.
  void (*dequantize)(std::span<const std::byte> blocks, float* values);
  // Encodes whole blocks of values, each finite and at most 65504 in magnitude. Null: nothing here
  // writes the format.
  void (*quantize)(std::span<const float> values, std::byte* blocks);
};

const WeightFormatTraits& traits_of(WeightFormat format);  // thread-safe, never fails

// Returns the bytes of `num_values` consecutive values; num_values is a multiple of the block size.
inline std::int64_t packed_bytes(WeightFormat format, std::int64_t num_values) {
  const WeightFormatTraits& traits = traits_of(format);
  return num_values / traits.block_size * traits.block_bytes;
}

}  // namespace pagoda
