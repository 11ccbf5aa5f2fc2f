#include "backend/reference/reference_weight.h"

#include <cstring>

#include "backend/native_exec.h"
#include "quant/tensor_rows.h"

namespace pagoda::reference {

namespace {

std::span<const std::byte> row_of(const BufferRef& rows, std::int64_t row, std::int64_t row_bytes) {
  return {rows->host() + row * row_bytes, static_cast<std::size_t>(row_bytes)};
}

void read_part_row(const ReferenceWeight::Part& part, std::int64_t row, std::int64_t cols,
                   float* values) {
  if (part.format != WeightFormat::kAffine) {
    const auto bytes = row_of(part.bytes, row, packed_bytes(part.format, cols));
    return traits_of(part.format).dequantize(bytes, values);
  }
  const std::int64_t scale_bytes = affine_scale_bytes(part.layout, cols);
  dequantize_affine_row({.layout = part.layout,
                         .codes = row_of(part.bytes, row, affine_code_bytes(part.layout, cols)),
                         .scales = row_of(part.scales, row, scale_bytes),
                         .biases = row_of(part.biases, row, scale_bytes)},
                        values);
}

Result<BufferRef> copy_of(NativeExec& exec, std::span<const std::byte> bytes) {
  PAGODA_ASSIGN_OR_RETURN(BufferRef copy, exec.allocate_weight_bytes(bytes.size()));
  std::memcpy(copy->host(), bytes.data(), bytes.size());
  return copy;
}

// Returns the rows of a matrix whose numbers lie otherwise.
Result<BufferRef> rows_of(NativeExec& exec, const HostTensor& tensor) {
  const std::int64_t size = packed_bytes(tensor.format, tensor.shape[1]);
  PAGODA_ASSIGN_OR_RETURN(
      BufferRef rows, exec.allocate_weight_bytes(static_cast<std::size_t>(tensor.shape[0] * size)));
  std::vector<std::byte> scratch;
  for (std::int64_t row = 0; row < tensor.shape[0]; ++row) {
    std::memcpy(rows->host() + row * size, row_bytes(tensor, row, scratch).data(),
                static_cast<std::size_t>(size));
  }
  return rows;
}

Result<ReferenceWeight::Part> copy_of(NativeExec& exec, const HostTensor& tensor) {
  ReferenceWeight::Part part{.format = tensor.format, .rows = tensor.shape[0], .bytes = {}};
  if (tensor.mxfp4 || tensor.strides) {
    PAGODA_ASSIGN_OR_RETURN(part.bytes, rows_of(exec, tensor));
  } else {
    PAGODA_ASSIGN_OR_RETURN(part.bytes, copy_of(exec, tensor.bytes));
  }
  if (tensor.affine) {
    part.layout = tensor.affine->layout;
    PAGODA_ASSIGN_OR_RETURN(part.scales, copy_of(exec, tensor.affine->scales));
    PAGODA_ASSIGN_OR_RETURN(part.biases, copy_of(exec, tensor.affine->biases));
  }
  release_pages(tensor);
  return part;
}

}  // namespace

std::int64_t ReferenceWeight::num_bytes() const {
  std::size_t total = 0;
  for (const Part& part : parts_) {
    for (const BufferRef* bytes : {&part.bytes, &part.scales, &part.biases}) {
      if (*bytes) total += (*bytes)->size();
    }
  }
  return static_cast<std::int64_t>(total);
}

void ReferenceWeight::read_row(std::int64_t row, float* values) const {
  for (const Part& part : parts_) {
    if (row < part.rows) return read_part_row(part, row, cols_, values);
    row -= part.rows;
  }
  PAGODA_CHECK(false, fmt::format("[weight] row {} past the end", row));
}

Weight weight_of_expert(const ExpertWeight& weight, int expert) {
  const std::vector<ReferenceWeight::Part>& parts = packed(weight.all).parts();
  const auto num_parts = static_cast<std::ptrdiff_t>(parts.size()) / weight.num_experts;
  const auto first = parts.begin() + expert * num_parts;
  return {.rows = weight.rows(),
          .cols = weight.cols(),
          .packed = std::make_shared<ReferenceWeight>(
              weight.cols(), std::vector<ReferenceWeight::Part>(first, first + num_parts)),
          .format = weight.all.format};
}

Result<Weight> prepare_weight(Exec& exec, std::span<const HostTensor> parts, WeightUse) {
  auto& native = static_cast<NativeExec&>(exec);
  std::vector<ReferenceWeight::Part> copies;
  Weight weight{.rows = 0, .cols = parts[0].shape[1]};
  for (const HostTensor& part : parts) {
    PAGODA_ASSIGN_OR_RETURN(ReferenceWeight::Part copy, copy_of(native, part));
    copies.push_back(std::move(copy));
    weight.rows += part.shape[0];
  }
  weight.packed = std::make_shared<ReferenceWeight>(weight.cols, std::move(copies));
  return weight;
}

}  // namespace pagoda::reference
