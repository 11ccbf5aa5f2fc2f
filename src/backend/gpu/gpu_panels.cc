#include "backend/gpu/gpu_panels.h"

#include "quant/weight_format.h"

namespace pagoda::gpu {
namespace {

constexpr int kPlainGroup = 128;

std::string_view type_name(WeightFormat plain) {
  return plain == WeightFormat::kF32 ? "float" : plain == WeightFormat::kBF16 ? "bfloat" : "half";
}

}  // namespace

bool PanelFormat::has_offset() const {
  switch (format) {
    case WeightFormat::kQ4_1:
    case WeightFormat::kQ5_1:
    case WeightFormat::kQ2_K:
    case WeightFormat::kQ4_K:
    case WeightFormat::kQ5_K:
    case WeightFormat::kAffine:
      return true;
    default:
      return false;
  }
}

int PanelFormat::bits() const {
  switch (format) {
    case WeightFormat::kF32:
      return 32;
    case WeightFormat::kF16:
    case WeightFormat::kBF16:
      return 16;
    case WeightFormat::kQ8_0:
      return 8;
    case WeightFormat::kQ6_K:
      return 6;
    case WeightFormat::kQ5_0:
    case WeightFormat::kQ5_1:
    case WeightFormat::kQ5_K:
      return 5;
    case WeightFormat::kQ3_K:
      return 3;
    case WeightFormat::kQ2_K:
      return 2;
    case WeightFormat::kAffine:
      return affine.bits;
    default:
      return 4;
  }
}

int PanelFormat::group() const {
  if (is_affine()) return affine.group_size;
  if (is_plain()) return kPlainGroup;
  const bool is_fine = format == WeightFormat::kQ2_K || format == WeightFormat::kQ3_K ||
                       format == WeightFormat::kQ6_K;
  return is_fine ? 16 : 32;
}

int PanelFormat::zero() const {
  switch (format) {
    case WeightFormat::kQ8_0:
      return 128;
    case WeightFormat::kQ4_0:
      return 8;
    case WeightFormat::kQ5_0:
      return 16;
    case WeightFormat::kQ3_K:
      return 4;
    case WeightFormat::kQ6_K:
      return 32;
    default:
      return 0;
  }
}

int PanelFormat::halves(int num_k) const {
  switch (format) {
    case WeightFormat::kQ8_0:
    case WeightFormat::kQ4_0:
    case WeightFormat::kQ5_0:
    case WeightFormat::kIQ4_NL:
      return num_k / 32;
    case WeightFormat::kMXFP4:
      return (num_k / 32 + 1) / 2;
    case WeightFormat::kQ3_K:
    case WeightFormat::kQ6_K:
      return 1;
    default:
      return 0;
  }
}

int PanelFormat::words(int num_k) const {
  switch (format) {
    case WeightFormat::kQ4_1:
    case WeightFormat::kQ5_1:
      return num_k / 32;
    case WeightFormat::kQ2_K:
      return 5;
    case WeightFormat::kQ3_K:
      return 3;
    case WeightFormat::kQ4_K:
    case WeightFormat::kQ5_K:
    case WeightFormat::kQ6_K:
      return 4;
    case WeightFormat::kIQ4_XS:
      return 2;
    case WeightFormat::kAffine:
      return num_k / affine.group_size * traits_of(affine.scale_format).block_bytes / 2;
    default:
      return 0;
  }
}

int PanelFormat::words_begin(int num_k) const {
  constexpr int kLine = 32;  // words
  const int all = kPanelColumns / 2 * halves(num_k);
  return is_super() ? (all + kLine - 1) / kLine * kLine : all;
}

std::int64_t PanelFormat::unit_words(int num_k) const {
  const std::int64_t header = words_begin(num_k) + kPanelColumns * words(num_k);
  if (!is_plain()) return header + std::int64_t{bits()} * num_k;
  const int bytes = traits_of(format).block_bytes * num_k;
  return std::int64_t{kPanelColumns} * ((bytes + 15) / 16 * 4);
}

PanelFormat panel_format_of(const HostTensor& matrix) {
  PanelFormat format = {.format = matrix.format};
  if (matrix.affine) format.affine = matrix.affine->layout;
  return format;
}

std::int64_t panel_words(const PanelFormat& format, std::int64_t cols) {
  const std::int64_t whole = cols / format.unit();
  return whole * format.unit_words(format.unit()) +
         (cols % format.unit() == 0 ? 0
                                    : format.unit_words(static_cast<int>(cols % format.unit())));
}

std::vector<std::string_view> template_arguments(const PanelFormat& format) {
  static constexpr std::string_view kNumbers[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8"};
  const auto bits = [&]() -> std::string_view {
    return format.bits() == 32 ? "32" : format.bits() == 16 ? "16" : kNumbers[format.bits()];
  };
  const auto group = [&]() -> std::string_view {
    return format.group() == 16   ? "16"
           : format.group() == 32 ? "32"
           : format.group() == 64 ? "64"
                                  : "128";
  };
  const std::string_view name = format.is_affine() ? "Affine" : traits_of(format.format).name;
  const WeightFormat type = format.is_affine()  ? format.affine.scale_format
                            : format.is_plain() ? format.format
                                                : WeightFormat::kF16;
  const bool has_exponents = format.format == WeightFormat::kMXFP4;
  return {name, bits(), group(), has_exponents ? "uchar" : type_name(type)};
}

}  // namespace pagoda::gpu
