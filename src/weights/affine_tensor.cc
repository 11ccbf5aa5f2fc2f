#include "weights/affine_tensor.h"

#include <string_view>

#include "weights/printable.h"

namespace pagoda {
namespace {

std::string_view module_of(std::string_view name) {
  constexpr std::string_view kSuffix = ".weight";
  if (name.ends_with(kSuffix)) name.remove_suffix(kSuffix.size());
  return name;
}

Status check_matrix(const HostTensor& tensor) {
  const bool is_one = tensor.shape.rank() == 2 || tensor.shape.rank() == 3;
  if (is_one && tensor.shape.num_elements() > 0) return ok_status();
  return unsupported("[checkpoint] tensor {}: expected a matrix of affine groups, got {}",
                     printable(tensor.name), to_string(tensor.shape));
}

std::int64_t rows_of(const HostTensor& tensor) {
  return tensor.shape.num_elements() / tensor.shape[-1];
}

// Checks scales or biases: they must be [rows, groups] of a plain type.
Status check_numbers(const HostTensor& codes, const StoredTensor* numbers, const char* suffix) {
  const std::string name = printable(module_of(codes.name)) + suffix;
  if (numbers == nullptr) {
    return data_loss("[checkpoint] tensor {}: expected {} beside its codes, got none",
                     printable(codes.name), name);
  }
  if (!numbers->unsupported.empty()) {
    return unsupported("[checkpoint] tensor {}: {} is not supported; F32, F16 and BF16 are", name,
                       numbers->unsupported);
  }
  PAGODA_RETURN_IF_ERROR(check_matrix(numbers->tensor));
  if (rows_of(numbers->tensor) == rows_of(codes)) return ok_status();
  return data_loss("[checkpoint] tensor {}: expected {} rows, got {}", name, rows_of(codes),
                   rows_of(numbers->tensor));
}

Status check_alike(const HostTensor& scales, const HostTensor& biases) {
  const auto describe = [](const HostTensor& tensor) {
    return fmt::format("{} {}", to_string(tensor.shape), traits_of(tensor.format).name);
  };
  if (scales.shape == biases.shape && scales.format == biases.format) return ok_status();
  return data_loss("[checkpoint] tensor {}: expected {} as its scales, got {}",
                   printable(biases.name), describe(scales), describe(biases));
}

// Returns the widths of a matrix with `groups` groups per row, from the config and the codes.
Result<MlxWidths> widths_of(const HostTensor& codes, std::int64_t groups,
                            const MlxQuantization& config) {
  const auto named = config.modules.find(module_of(codes.name));
  const bool is_named = named != config.modules.end();
  if (is_named && !named->second) {
    return data_loss(
        "[checkpoint] tensor {}: expected it unquantised, as config.json says, got U32 codes",
        printable(codes.name));
  }
  MlxWidths widths = is_named ? *named->second : config.widths;
  const std::int64_t words = codes.shape[-1];
  const std::int64_t bits = words * 32 / (groups * widths.group_size);
  const AffineLayout derived{.bits = static_cast<int>(bits), .group_size = widths.group_size};
  if (!is_named && bits <= 8 && is_affine_layout(derived)) widths.bits = derived.bits;
  const std::int64_t expected = groups * (widths.group_size / 32) * widths.bits;
  if (words != expected) {
    return data_loss(
        "[checkpoint] tensor {}: expected {} words a row for {} groups of {} with {} bits, got {}",
        printable(codes.name), expected, groups, widths.group_size, widths.bits, words);
  }
  return widths;
}

}  // namespace

Result<HostTensor> join_affine(const AffineParts& parts, const MlxQuantization& config) {
  HostTensor matrix = parts.codes->tensor;
  PAGODA_RETURN_IF_ERROR(check_matrix(matrix));
  PAGODA_RETURN_IF_ERROR(check_numbers(matrix, parts.scales, ".scales"));
  PAGODA_RETURN_IF_ERROR(check_numbers(matrix, parts.biases, ".biases"));
  const HostTensor& scales = parts.scales->tensor;
  const HostTensor& biases = parts.biases->tensor;
  PAGODA_RETURN_IF_ERROR(check_alike(scales, biases));
  PAGODA_ASSIGN_OR_RETURN(const MlxWidths widths, widths_of(matrix, scales.shape[-1], config));
  matrix.format = WeightFormat::kAffine;
  matrix.shape.set(-1, scales.shape[-1] * widths.group_size);
  matrix.affine = AffineGroups{.layout = {.bits = widths.bits,
                                          .group_size = widths.group_size,
                                          .scale_format = scales.format},
                               .scales = scales.bytes,
                               .biases = biases.bytes,
                               .scales_storage = scales.storage,
                               .biases_storage = biases.storage};
  PAGODA_RETURN_IF_ERROR(check_affine(matrix));
  return matrix;
}

}  // namespace pagoda
