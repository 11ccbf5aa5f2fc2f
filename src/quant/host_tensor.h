// HostTensor: a checkpoint's tensor as its file stores it, not yet packed for any backend.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/shape.h"
#include "core/status.h"
#include "quant/affine.h"
#include "quant/mxfp4.h"
#include "quant/weight_format.h"

namespace pagoda {

// The owner of the bytes that HostTensors point into: a mapped file, or memory (OwnedBytes).
class HostStorage {
 public:
  virtual ~HostStorage() = default;
  // Records that the bytes have been read for the last time: their pages may leave this process's
  // memory. They stay readable.
  virtual void release_pages(std::span<const std::byte> bytes) const {}
};

// The scales and biases of rows of affine groups, both [rows, cols / group_size]. They are
// stored beside its codes, perhaps in different files.
struct AffineGroups {
  AffineLayout layout;
  std::span<const std::byte> scales;
  std::span<const std::byte> biases;
  std::shared_ptr<const HostStorage> scales_storage;
  std::shared_ptr<const HostStorage> biases_storage;
};

// The scales of a tensor in MXFP4 that are stored beside its codes, as gpt-oss and MLX have them. A
// row of codes is [cols / 2] bytes with the even element of a pair in the low nibble. A row of scales
// is [cols / 32] bytes. For tensors of three extents, rows are those of all matrices.
struct Mxfp4Scales {
  std::span<const std::byte> scales;
  std::shared_ptr<const HostStorage> storage;
  // From a row of the tensor to its next, in rows of both arrays. It is 2 if rows of a gate and of
  // an up part take turns.
  std::int64_t row_step = 1;
};

// The place of a matrix's numbers in another one of a plain type, such as its transposed: distances
// from a row to the next, and from a column to the next, in numbers.
struct Strides {
  std::int64_t row = 0;
  std::int64_t col = 0;
};

// Row-major, the innermost extent last: a linear layer's weight is [out_features, in_features], as
// Hugging Face has it. The loader has checked that `bytes` is exactly as long as format and shape
// say. They may be unaligned (safetensors promises nothing): read them with memcpy.
struct HostTensor {
  std::string name;  // canonical, as Hugging Face names it: "model.layers.3.mlp.up_proj.weight"
  WeightFormat format = WeightFormat::kF32;
  Shape shape;                       // of the values, not of the stored arrays
  std::span<const std::byte> bytes;  // only the codes, if there is `affine` or `mxfp4`
  std::shared_ptr<const HostStorage> storage;
  std::optional<AffineGroups> affine;  // present for kAffine alone
  std::optional<Mxfp4Scales> mxfp4;    // absent: blocks of kMXFP4 have their scales
  std::optional<Strides> strides;      // absent: rows follow one another

  // Returns whether rows lie in `bytes` one after the other, as the format has them.
  bool has_whole_rows() const { return !affine && !mxfp4 && !strides; }
};

// Returns the name of a tensor's format: "Q4_1", "affine 4-bit, groups of 64".
std::string format_name(const HostTensor& tensor);

// Returns the number of bytes that the tensor takes in its files.
std::int64_t num_bytes(const HostTensor& tensor);

// Releases all of the tensor's pages.
void release_pages(const HostTensor& tensor);

// Checks a tensor of kAffine, a matrix or several. kInvalidArgument: no matrix, widths that affine.h
// does not know, or an array that is not as long as shape and layout say.
Status check_affine(const HostTensor& tensor);

// Checks a matrix with Strides: a plain type, and bytes from its first number to its last. Errors are
// kInvalidArgument.
Status check_strides(const HostTensor& tensor);

// Checks a tensor with Mxfp4Scales: rows of whole blocks, and arrays as long as its shape says.
// Errors are kInvalidArgument.
Status check_mxfp4(const HostTensor& tensor);

// Returns row `row` of a tensor. REQUIRES: check_affine() accepts the tensor.
AffineRow affine_row(const HostTensor& tensor, std::int64_t row);

}  // namespace pagoda
