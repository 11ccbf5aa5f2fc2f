// BlockSpec: the tensors that a block of a layer reads from a checkpoint, listed once. The loader
// packs them, and a checkpoint's tensors are checked against the list. `pagoda quantize` looks up a
// tensor's use in it, and `pagoda bench` counts matrix products by it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/weight.h"

namespace pagoda {

// The use of a layer's matrix.
enum class ProjectionRole : std::uint8_t {
  kQueriesKeysValues,
  kOutputGate,
  kAttentionOutput,
  kGateUp,
  kDown,
  kPerLayerGate,
  kPerLayerOutput,
  kRouter,
  kSharedGate,
};

// The use of a layer's vector. All are norm weights except the last five.
enum class VectorRole : std::uint8_t {
  kAttentionNorm,  // of the input of attention
  kQueryNorm,
  kKeyNorm,
  kAttentionDeltaNorm,  // of the output of attention
  kMlpNorm,
  kMlpDeltaNorm,
  kDenseDeltaNorm,  // of ParallelMlpBlock, like the next two
  kExpertsNorm,
  kExpertsDeltaNorm,
  kPerLayerDeltaNorm,
  kLayerFactor,   // [1], multiplies the layer's output; a checkpoint may lack it
  kChoiceBias,    // RouteArgs::choice_bias
  kSinks,         // AttentionArgs::sinks
  kRouterScale,   // multiplies a router's normed input
  kExpertScales,  // RouteArgs::expert_scales
};

// One named matrix of a checkpoint, and its number of rows.
struct ProjectionPart {
  std::string name;  // without ".weight" and ".bias"
  std::int64_t rows = 0;
};

struct ProjectionSpec {
  ProjectionRole role = ProjectionRole::kQueriesKeysValues;
  std::vector<ProjectionPart> parts;  // joined along their rows: q, k and v as one
  std::string joined;                 // name of the joined matrix, which some checkpoints store
  std::int64_t cols = 0;
  bool bias = false;
  WeightUse use = WeightUse::kRows;

  std::int64_t rows() const;  // sum over the parts
};

struct VectorSpec {
  VectorRole role = VectorRole::kAttentionNorm;
  std::string name;  // without ".weight"
  std::int64_t dim = 0;
};

// The halves of the MLPs of experts.
enum class ExpertRole : std::uint8_t {
  kGateUp,
  kDown,
};

// A matrix of each expert. A checkpoint has a tensor [rows, cols] for each, or one [experts, rows,
// cols] for all. Codes and scales in MXFP4 may be two tensors (weights/mxfp4_tensor.h).
struct ExpertPart {
  std::string before;  // of an expert's module the name before its number, and behind it
  std::string behind;
  std::vector<std::string> stacked;  // names that the module of all experts may have
  std::int64_t rows = 0;

  std::string name_of(int expert) const { return before + std::to_string(expert) + behind; }
};

struct ExpertsSpec {
  ExpertRole role = ExpertRole::kGateUp;
  int num_experts = 0;
  std::vector<ExpertPart> parts;  // of each expert: a gate and an up part, or one
  std::string joined;             // name of the module with all parts of all experts; empty: none
  std::int64_t cols = 0;
  bool has_bias = false;  // a vector for each expert's part
  // How tensors of all experts lie whose names lack ".weight": as [experts, cols, rows], unless
  // their extents say otherwise; and with the parts' rows in turns in the joined one, which also
  // holds for its biases and MXFP4.
  bool is_transposed = false;
  bool is_interleaved = false;

  std::int64_t rows() const;  // of an expert, sum over the parts
};

struct BlockSpec {
  std::vector<ProjectionSpec> projections;  // in the order in which a step computes them
  std::vector<ExpertsSpec> experts;
  std::vector<VectorSpec> vectors;
  // Modules that checkpoints may have but nothing reads. transformers ignores them too.
  std::vector<std::string> passed_over;

  void append(BlockSpec more);  // its lists behind these
  // REQUIRES: the block has a projection of that role.
  const ProjectionSpec& projection(ProjectionRole role) const;
  // REQUIRES: the block has experts.
  const ExpertsSpec& experts_of(ExpertRole role) const;
  const VectorSpec* vector(VectorRole role) const;  // null: the block has none
};

}  // namespace pagoda
