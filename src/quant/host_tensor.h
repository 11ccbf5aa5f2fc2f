// HostTensor: a checkpoint's tensor as it lies in its file, not yet packed for any backend.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "core/shape.h"
#include "quant/weight_format.h"

namespace pagoda {

// The owner of the bytes that HostTensors point into: a mapped file, or memory made by a test.
class HostStorage {
 public:
  virtual ~HostStorage() = default;
  // The bytes have been read for the last time: their pages may leave this process's memory. They
  // stay readable.
  virtual void release_pages(std::span<const std::byte> bytes) const {}
};

// Row-major, the innermost extent last: a linear layer's weight is [out_features, in_features], as
// Hugging Face has it. The loader has checked that `bytes` is exactly as long as format and shape
// say. They may be unaligned (safetensors promises nothing): read them with memcpy.
struct HostTensor {
  std::string name;  // canonical, as Hugging Face names it: "model.layers.3.mlp.up_proj.weight"
  WeightFormat format = WeightFormat::kF32;
  Shape shape;
  std::span<const std::byte> bytes;
  std::shared_ptr<const HostStorage> storage;
};

}  // namespace pagoda
