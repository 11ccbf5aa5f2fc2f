// Projection: a weight with its bias, as blocks apply it. Also loads weights and norms.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "backend/weight.h"
#include "core/status.h"
#include "model/blocks/block_source.h"
#include "model/blocks/block_spec.h"
#include "ops/gated_linear/gated_linear.h"
#include "ops/linear/linear.h"
#include "weights/checkpoint.h"

namespace pagoda {

// The tensors of a projection in a checkpoint, one per part.
struct ProjectionTensors {
  std::vector<HostTensor> weights;  // [rows_i, cols]
  std::vector<HostTensor> biases;   // [rows_i]; empty: none
};

struct Projection {
  Weight weight;
  Tensor bias;  // [rows] float32, or undefined

  // Computes x [tokens, cols] -> [tokens, rows]
  Tensor apply(Exec& exec, const Tensor& x) const {
    return linear(exec, x, weight, {.bias = bias});
  }
  // Does the same in float32, for logits.
  Tensor apply_float32(Exec& exec, const Tensor& x) const {
    return linear(exec, x, weight, {.bias = bias, .out_float32 = true});
  }
  // Computes activation(gate(x)) * up(x), for a joined gate and up: x [tokens, cols] -> [tokens,
  // rows / 2]
  Tensor apply_gated(Exec& exec, const Tensor& x, const GluArgs& glu) const {
    return gated_linear(exec, x, weight, {.bias = bias, .glu = glu});
  }
};

// Finds a projection's tensors and checks that they have the spec's shapes.
Result<ProjectionTensors> find_projection(const Checkpoint& checkpoint, const ProjectionSpec& spec);
// Joins and packs a projection's tensors.
Result<Projection> pack_projection(Exec& exec, const ProjectionTensors& tensors,
                                   WeightUse use = WeightUse::kRows);
// Finds and packs a projection: the one of `spec`, or the layer's projection of that role.
Result<Projection> load_projection(Exec& exec, const Checkpoint& checkpoint,
                                   const ProjectionSpec& spec);
Result<Projection> load_projection(const BlockSource& source, ProjectionRole role);

// Reads the norm weight `name`, [dim], and adds `offset` to it (ModelConfig::norm_offset).
Result<std::vector<float>> read_norm(const Checkpoint& checkpoint, const std::string& name,
                                     std::int64_t dim, float offset);
// Reads a norm weight likewise, multiplies it by `factor` and uploads it.
Result<Tensor> load_norm(Exec& exec, const Checkpoint& checkpoint, const std::string& name,
                         std::int64_t dim, float offset, float factor = 1);

// Reads a layer's vector of that role. Its name may lack the usual ".weight", and may end in ".bias"
// in GGUF. REQUIRES: the layer has the vector.
Result<std::vector<float>> read_vector(const BlockSource& source, VectorRole role);
// Reads it likewise and uploads it.
Result<Tensor> load_vector(const BlockSource& source, VectorRole role);

// Returns the tensor `name`, checked to have exactly `shape`.
Result<HostTensor> checked_tensor(const Checkpoint& checkpoint, const std::string& name,
                                  const Shape& shape);

}  // namespace pagoda
