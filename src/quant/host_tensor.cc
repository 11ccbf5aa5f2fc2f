#include "quant/host_tensor.h"

namespace pagoda {
namespace {

Status check_array(const HostTensor& tensor, const char* what, std::span<const std::byte> bytes,
                   std::int64_t row_bytes) {
  const std::int64_t expected = tensor.shape.num_elements() / tensor.shape[-1] * row_bytes;
  if (static_cast<std::int64_t>(bytes.size()) == expected) return ok_status();
  return invalid_argument("[affine] tensor {}: expected {} bytes of {}, got {}", tensor.name,
                          expected, what, bytes.size());
}

}  // namespace

std::string format_name(const HostTensor& tensor) {
  if (!tensor.affine) return std::string(traits_of(tensor.format).name);
  return fmt::format("affine {}-bit, groups of {}", tensor.affine->layout.bits,
                     tensor.affine->layout.group_size);
}

std::int64_t num_bytes(const HostTensor& tensor) {
  std::size_t bytes = tensor.bytes.size();
  if (tensor.affine) bytes += tensor.affine->scales.size() + tensor.affine->biases.size();
  if (tensor.mxfp4) bytes += tensor.mxfp4->scales.size();
  return static_cast<std::int64_t>(bytes);
}

void release_pages(const HostTensor& tensor) {
  if (tensor.storage) tensor.storage->release_pages(tensor.bytes);
  if (tensor.mxfp4 && tensor.mxfp4->storage)
    tensor.mxfp4->storage->release_pages(tensor.mxfp4->scales);
  if (!tensor.affine) return;
  const AffineGroups& groups = *tensor.affine;
  if (groups.scales_storage) groups.scales_storage->release_pages(groups.scales);
  if (groups.biases_storage) groups.biases_storage->release_pages(groups.biases);
}

Status check_affine(const HostTensor& tensor) {
  if (!tensor.affine || tensor.shape.rank() < 2 || tensor.shape.num_elements() <= 0) {
    return invalid_argument("[affine] tensor {}: expected rows of affine groups, got {}",
                            tensor.name, to_string(tensor.shape));
  }
  const AffineGroups& groups = *tensor.affine;
  const AffineLayout& layout = groups.layout;
  if (!is_affine_layout(layout)) {
    return invalid_argument(
        "[affine] tensor {}: expected 2, 3, 4, 5, 6 or 8 bits in groups of 32, 64 or 128, got {} "
        "bits in groups of {}",
        tensor.name, layout.bits, layout.group_size);
  }
  const std::int64_t cols = tensor.shape[-1];
  if (cols % layout.group_size != 0) {
    return invalid_argument("[affine] tensor {}: expected a multiple of {} columns, got {}",
                            tensor.name, layout.group_size, cols);
  }
  PAGODA_RETURN_IF_ERROR(
      check_array(tensor, "codes", tensor.bytes, affine_code_bytes(layout, cols)));
  PAGODA_RETURN_IF_ERROR(
      check_array(tensor, "scales", groups.scales, affine_scale_bytes(layout, cols)));
  return check_array(tensor, "biases", groups.biases, affine_scale_bytes(layout, cols));
}

Status check_mxfp4(const HostTensor& tensor) {
  constexpr std::int64_t kBlock = BlockMXFP4::kValues;
  const Shape& shape = tensor.shape;
  if (!tensor.mxfp4 || shape.rank() < 2 || shape.num_elements() == 0 || shape[-1] % kBlock != 0) {
    return invalid_argument("[mxfp4] tensor {}: expected rows of whole blocks of {} values, got {}",
                            tensor.name, kBlock, to_string(shape));
  }
  const std::int64_t num_blocks = shape[-1] / kBlock;
  const std::int64_t rows = (shape.num_elements() / shape[-1] - 1) * tensor.mxfp4->row_step + 1;
  const auto check = [&](const char* what, std::size_t bytes, std::int64_t of_block) -> Status {
    const std::int64_t expected = rows * num_blocks * of_block;
    if (static_cast<std::int64_t>(bytes) == expected) return ok_status();
    return invalid_argument("[mxfp4] tensor {}: expected {} bytes of {}, got {}", tensor.name,
                            expected, what, bytes);
  };
  PAGODA_RETURN_IF_ERROR(check("codes", tensor.bytes.size(), kBlock / 2));
  return check("scales", tensor.mxfp4->scales.size(), 1);
}

Status check_strides(const HostTensor& tensor) {
  const Shape& shape = tensor.shape;
  if (!tensor.strides || shape.rank() != 2 || shape.num_elements() == 0 ||
      traits_of(tensor.format).block_size != 1 || tensor.format == WeightFormat::kAffine) {
    return invalid_argument("[strides] tensor {}: expected a matrix of a plain type, got {} of {}",
                            tensor.name, to_string(shape), format_name(tensor));
  }
  const std::int64_t last =
      (shape[0] - 1) * tensor.strides->row + (shape[1] - 1) * tensor.strides->col;
  const std::int64_t expected = (last + 1) * traits_of(tensor.format).block_bytes;
  if (static_cast<std::int64_t>(tensor.bytes.size()) == expected) return ok_status();
  return invalid_argument("[strides] tensor {}: expected {} bytes, got {}", tensor.name, expected,
                          tensor.bytes.size());
}

AffineRow affine_row(const HostTensor& tensor, std::int64_t row) {
  const AffineGroups& groups = *tensor.affine;
  const auto code_bytes =
      static_cast<std::size_t>(affine_code_bytes(groups.layout, tensor.shape[-1]));
  const auto scale_bytes =
      static_cast<std::size_t>(affine_scale_bytes(groups.layout, tensor.shape[-1]));
  const auto at = static_cast<std::size_t>(row);
  return {.layout = groups.layout,
          .codes = tensor.bytes.subspan(at * code_bytes, code_bytes),
          .scales = groups.scales.subspan(at * scale_bytes, scale_bytes),
          .biases = groups.biases.subspan(at * scale_bytes, scale_bytes)};
}

}  // namespace pagoda
