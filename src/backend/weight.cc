#include "backend/weight.h"

#include <algorithm>
#include <utility>
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
  if (part.mxfp4) return check_mxfp4(part);
  if (part.strides) return check_strides(part);
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

// Checks that all parts have as many rows.
Status check_rows(std::span<const HostTensor> parts) {
  for (const HostTensor& part : parts) {
    if (part.shape[0] == parts[0].shape[0]) continue;
    return invalid_argument("[weight] tensor {}: expected {} rows as in {}, got {}", part.name,
                            parts[0].shape[0], parts[0].name, part.shape[0]);
  }
  return ok_status();
}

bool have_one_format(const HostTensor& a, const HostTensor& b) {
  if (a.format != b.format) return false;
  return !a.affine || a.affine->layout == b.affine->layout;
}

// Checks that experts have whole sets of parts, and each part the format of the first expert's.
Status check_experts(std::span<const HostTensor> parts, bool is_gated) {
  const std::size_t num_parts = is_gated ? 2 : 1;  // of an expert
  if (parts.size() % num_parts != 0) {
    return invalid_argument("[weight] tensor {}: expected a gate and an up part for each expert",
                            parts[0].name);
  }
  for (std::size_t i = num_parts; i < parts.size(); ++i) {
    const HostTensor& first = parts[i % num_parts];
    if (have_one_format(parts[i], first)) continue;
    return unsupported("[weight] tensor {}: {} is not supported beside {} in {}", parts[i].name,
                       format_name(parts[i]), format_name(first), first.name);
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
    case Backend::kCuda:
      return gpu::prepare_weight(exec, parts, use);
  }
  return internal_error("[weight] unknown backend {}", static_cast<int>(exec.backend()));
}

}  // namespace

Result<Weight> prepare_weight(Exec& exec, std::span<const HostTensor> parts, WeightUse use) {
  if (parts.empty()) return invalid_argument("[weight] expected at least one part, got none");
  const std::int64_t cols = parts[0].shape.rank() == 2 ? parts[0].shape[1] : 0;
  for (const HostTensor& part : parts) PAGODA_RETURN_IF_ERROR(check_part(part, cols));
  if (use != WeightUse::kRows) PAGODA_RETURN_IF_ERROR(check_rows(parts));
  if (use == WeightUse::kGated && parts.size() != 2) {
    return invalid_argument("[weight] tensor {}: expected a gate and another part, got {} parts",
                            parts[0].name, parts.size());
  }
  if (is_of_experts(use)) PAGODA_RETURN_IF_ERROR(check_experts(parts, is_gated(use)));
  PAGODA_ASSIGN_OR_RETURN(Weight weight, pack(exec, parts, use));
  weight.format = format_of(parts);
  return weight;
}

Result<ExpertWeight> prepare_experts(Exec& exec, std::span<const HostTensor> parts, bool is_gated) {
  const WeightUse use = is_gated ? WeightUse::kGatedExperts : WeightUse::kExperts;
  PAGODA_ASSIGN_OR_RETURN(Weight all, prepare_weight(exec, parts, use));
  const auto num_parts = static_cast<int>(parts.size());
  return ExpertWeight{.all = std::move(all), .num_experts = is_gated ? num_parts / 2 : num_parts};
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
