#include "backend/weight.h"

#include <algorithm>
#include <vector>

namespace pagoda {
namespace {

Status check_part(const HostTensor& part, std::int64_t cols) {
  const WeightFormatTraits& traits = traits_of(part.format);
  if (part.shape.rank() != 2 || part.shape[0] <= 0 || part.shape[1] <= 0) {
    return invalid_argument("[weight] tensor {}: expected a matrix, got {}", part.name,
                            to_string(part.shape));
  }
  if (part.shape[1] != cols) {
    return invalid_argument("[weight] tensor {}: expected {} columns, got {}", part.name, cols,
                            part.shape[1]);
  }
  if (part.format == WeightFormat::kAffine) return check_affine(part);
  if (cols % traits.block_size != 0) {
    return invalid_argument("[weight] tensor {}: expected a multiple of {} columns in {}, got {}",
                            part.name, traits.block_size, traits.name, cols);
  }
  const std::int64_t expected = packed_bytes(part.format, part.shape.num_elements());
  if (static_cast<std::int64_t>(part.bytes.size()) != expected) {
    return invalid_argument("[weight] tensor {}: expected {} bytes, got {}", part.name, expected,
                            part.bytes.size());
  }
  return ok_status();
}

std::string_view format_of(std::span<const HostTensor> parts) {
  const WeightFormat first = parts[0].format;
  const bool is_one = std::all_of(parts.begin(), parts.end(),
                                  [&](const HostTensor& part) { return part.format == first; });
  return is_one ? traits_of(first).name : "mixed";
}

Result<Weight> pack(Exec& exec, std::span<const HostTensor> parts, WeightUse use) {
  switch (exec.backend()) {
    case Backend::kReference:
      return reference::prepare_weight(exec, parts, use);
    case Backend::kCpu:
      return cpu::prepare_weight(exec, parts, use);
    case Backend::kMlx:
      return mlx::prepare_weight(exec, parts, use);
    case Backend::kCuda:
      return cuda::prepare_weight(exec, parts, use);
  }
  return internal_error("[weight] unknown backend {}", static_cast<int>(exec.backend()));
}

}  // namespace

Result<Weight> prepare_weight(Exec& exec, std::span<const HostTensor> parts, WeightUse use) {
  if (parts.empty()) return invalid_argument("[weight] expected at least one part, got none");
  const std::int64_t cols = parts[0].shape.rank() == 2 ? parts[0].shape[1] : 0;
  for (const HostTensor& part : parts) PAGODA_RETURN_IF_ERROR(check_part(part, cols));
  if (use == WeightUse::kGated && (parts.size() != 2 || parts[0].shape[0] != parts[1].shape[0])) {
    return invalid_argument("[weight] tensor {}: expected a gate and another part of as many rows",
                            parts[0].name);
  }
  PAGODA_ASSIGN_OR_RETURN(Weight weight, pack(exec, parts, use));
  weight.format = format_of(parts);
  return weight;
}

Result<std::vector<float>> read_vector(std::span<const HostTensor> parts) {
  std::vector<float> values;
  for (const HostTensor& part : parts) {
    if (part.format == WeightFormat::kAffine) {
      return invalid_argument("[weight] tensor {}: expected a vector of a plain type, got {}",
                              part.name, format_name(part));
    }
    const std::int64_t extent = part.shape.rank() == 1 ? part.shape[0] : 0;
    const WeightFormatTraits& traits = traits_of(part.format);
    if (extent <= 0 || extent % traits.block_size != 0) {
      return invalid_argument("[weight] tensor {}: expected a vector of whole {} blocks, got {}",
                              part.name, traits.name, to_string(part.shape));
    }
    const std::int64_t expected = packed_bytes(part.format, extent);
    if (static_cast<std::int64_t>(part.bytes.size()) != expected) {
      return invalid_argument("[weight] tensor {}: expected {} bytes, got {}", part.name, expected,
                              part.bytes.size());
    }
    values.resize(values.size() + extent);
    traits.dequantize(part.bytes, values.data() + values.size() - extent);
    if (part.storage) part.storage->release_pages(part.bytes);
  }
  if (values.empty()) return invalid_argument("[weight] expected at least one vector, got none");
  return values;
}

Result<Tensor> prepare_vector(Exec& exec, std::span<const HostTensor> parts) {
  PAGODA_ASSIGN_OR_RETURN(const std::vector<float> values, read_vector(parts));
  return exec.upload<float>(values, {static_cast<std::int64_t>(values.size())});
}

}  // namespace pagoda
