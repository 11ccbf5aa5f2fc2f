// Weight: a matrix packed by the backend that will read it; nobody else looks inside.
//
// Quantised weights stay quantised. One Weight serves linear and row gather, so that a tied
// embedding has no second copy.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "core/status.h"
#include "quant/host_tensor.h"
#include "tensor/exec.h"

namespace pagoda {

// A backend's own packing; each backend derives one class.
class PackedWeight {
 public:
  virtual ~PackedWeight() = default;
  virtual std::int64_t num_bytes() const = 0;  // that a product with one row reads
};

struct Weight {
  std::int64_t rows = 0;  // out_features
  std::int64_t cols = 0;  // in_features
  std::shared_ptr<const PackedWeight> packed;
  std::string_view format;  // of its parts: "Q4_1"; "mixed" where they differ

  bool defined() const { return packed != nullptr; }
};

// Joins `parts`, each [rows_i, cols], along their rows (q, k and v as one) and packs them; parts
// may differ in format. Source pages are released as they are packed. Call in the order in which a
// step reads the weights: a backend may lay them out in one ascending stream. kInvalidArgument
// where shapes disagree, kUnsupported for a format the backend can't hold.
Result<Weight> prepare_weight(Exec& exec, std::span<const HostTensor> parts);

// Norm weights and biases: `parts`, each [n_i], joined and widened to float32; a persistent tensor
// [sum of n_i].
Result<Tensor> prepare_vector(Exec& exec, std::span<const HostTensor> parts);

namespace reference {
Result<Weight> prepare_weight(Exec& exec, std::span<const HostTensor> parts);
}
namespace cpu {
Result<Weight> prepare_weight(Exec& exec, std::span<const HostTensor> parts);
}
namespace mlx {
Result<Weight> prepare_weight(Exec& exec, std::span<const HostTensor> parts);
}
namespace cuda {
Result<Weight> prepare_weight(Exec& exec, std::span<const HostTensor> parts);
}

}  // namespace pagoda
