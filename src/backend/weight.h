// Weight: a matrix packed by the backend that will read it; no other code looks inside.
//
// Quantised weights stay quantised. One Weight serves linear and row gather, so that a tied
// embedding has no second copy.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "quant/host_tensor.h"
#include "tensor/exec.h"

namespace pagoda {

// A backend's own packing; each backend derives one class.
class PackedWeight {
 public:
  virtual ~PackedWeight() = default;
  virtual std::int64_t num_bytes() const = 0;  // bytes that a product of one row reads
  // Sets the weight of the same backend that a step reads after this one, so that its beginning may
  // be prefetched. Called before any step runs.
  virtual void set_next(const PackedWeight& next, const Exec& exec) {}
};

// The relation between the parts of a joined weight.
enum class WeightUse : std::uint8_t {
  kRows,          // rows of one product, one part after the other: q, k and v
  kGated,         // a gate and an up part with as many rows: gated_linear reads both together
  kExperts,       // a matrix for each expert of a layer, all of one shape
  kGatedExperts,  // a gate and an up part for each expert, in the order of experts
};

// Returns whether the parts are gates and up parts, in turns.
constexpr bool is_gated(WeightUse use) {
  return use == WeightUse::kGated || use == WeightUse::kGatedExperts;
}
// Returns whether a product reads some of the parts: those of the experts that rows have chosen.
constexpr bool is_of_experts(WeightUse use) {
  return use == WeightUse::kExperts || use == WeightUse::kGatedExperts;
}

struct Weight {
  std::int64_t rows = 0;  // out_features
  std::int64_t cols = 0;  // in_features
  std::shared_ptr<PackedWeight> packed;
  std::string_view format;  // the parts' format: "Q4_1"; "mixed" if they differ

  bool defined() const { return packed != nullptr; }
};

// The matrices of a layer's experts.
struct ExpertWeight {
  Weight all;  // joined along their rows
  int num_experts = 0;

  bool defined() const { return all.defined(); }
  std::int64_t rows() const { return all.rows / num_experts; }  // of an expert
  std::int64_t cols() const { return all.cols; }
};

// Joins `parts`, each [rows_i, cols], along their rows (q, k and v as one) and packs them; parts
// may differ in format. Source pages are released as they are packed. kInvalidArgument if shapes
// disagree, kUnsupported for a format that the backend does not have.
Result<Weight> prepare_weight(Exec& exec, std::span<const HostTensor> parts,
                              WeightUse use = WeightUse::kRows);
// Packs the experts' matrices: one part for each expert, or a gate and an up part for each if
// `is_gated`. Errors are those of prepare_weight(). kUnsupported if a part's format differs between experts.
Result<ExpertWeight> prepare_experts(Exec& exec, std::span<const HostTensor> parts, bool is_gated);

// Joins `parts`, each [n_i], and widens them to float32: norm weights and biases. Source pages are
// released. kInvalidArgument if a part is not a vector of whole blocks.
Result<std::vector<float>> read_vector(std::span<const HostTensor> parts);
// Returns the result of read_vector() as a persistent tensor [sum of n_i].
Result<Tensor> prepare_vector(Exec& exec, std::span<const HostTensor> parts);

namespace reference {
Result<Weight> prepare_weight(Exec& exec, std::span<const HostTensor> parts, WeightUse use);
}
namespace cpu {
Result<Weight> prepare_weight(Exec& exec, std::span<const HostTensor> parts, WeightUse use);
}
namespace gpu {
Result<Weight> prepare_weight(Exec& exec, std::span<const HostTensor> parts, WeightUse use);
}

}  // namespace pagoda
