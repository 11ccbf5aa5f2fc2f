// The tensors of a mixture's experts, as checkpoints store them.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "backend/weight.h"
#include "core/status.h"
#include "model/blocks/block_source.h"
#include "model/blocks/block_spec.h"
#include "weights/checkpoint.h"

namespace pagoda {

// Finds the matrices of experts, in the order in which prepare_experts() takes them, and checks
// their shapes. Tensors with the matrices of all experts are preferred. kNotFound names a matrix
// that is missing, kDataLoss a tensor of a wrong shape.
Result<std::vector<HostTensor>> find_experts(const Checkpoint& checkpoint, const ExpertsSpec& spec);

// Returns whether a checkpoint has the tensor of a module with the matrices of all experts, or the
// tensor of their biases.
bool has_expert_tensor(const Checkpoint& checkpoint, const std::string& module, bool is_bias);

// Finds the biases of experts, a tensor [experts, rows] of F32 for each part. Errors are those of
// find_experts(). REQUIRES: spec.has_bias.
Result<std::vector<HostTensor>> find_expert_biases(const Checkpoint& checkpoint,
                                                   const ExpertsSpec& spec);

// Loads them: [experts, spec.rows()].
Result<Tensor> load_expert_biases(const BlockSource& source, ExpertRole role);

// Finds and packs experts.
Result<ExpertWeight> load_experts(Exec& exec, const Checkpoint& checkpoint,
                                  const ExpertsSpec& spec);

// The use of a tensor in a checkpoint.
struct ExpertPlace {
  int part = 0;     // -1: the tensor has all parts
  int expert = -1;  // -1: the tensor has the matrices of all experts
};

// Finds the place of a module by its name; nothing if it is none of the experts'.
std::optional<ExpertPlace> find_expert(const ExpertsSpec& spec, std::string_view module);

}  // namespace pagoda
