// BlockSpec: what a block of a layer reads of a checkpoint, written down once. The loader packs it,
// and a checkpoint's tensors are checked against it. `pagoda quantize` asks it what a tensor is
// for, and `pagoda bench` counts products by it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/weight.h"

namespace pagoda {

// The use of a layer's matrix.
enum class ProjectionRole : std::uint8_t {
  kQueriesKeysValues,
  kAttentionOutput,
  kGateUp,
  kDown,
  kPerLayerGate,
  kPerLayerOutput,
};

// The use of a layer's vector: a norm's weights but for kLayerFactor.
enum class VectorRole : std::uint8_t {
  kAttentionNorm,  // of what attention reads
  kQueryNorm,
  kKeyNorm,
  kAttentionDeltaNorm,  // of what attention adds
  kMlpNorm,
  kMlpDeltaNorm,
  kPerLayerDeltaNorm,
  kLayerFactor,  // [1], of all that leaves the layer; a checkpoint may lack it
};

// One named matrix of a checkpoint, by its rows.
struct ProjectionPart {
  std::string name;  // without ".weight" and ".bias"
  std::int64_t rows = 0;
};

struct ProjectionSpec {
  ProjectionRole role = ProjectionRole::kQueriesKeysValues;
  std::vector<ProjectionPart> parts;  // joined along their rows: q, k and v as one
  std::string joined;                 // the name of one matrix that some checkpoints have of them
  std::int64_t cols = 0;
  bool bias = false;
  WeightUse use = WeightUse::kRows;

  std::int64_t rows() const;  // of all parts
};

struct VectorSpec {
  VectorRole role = VectorRole::kAttentionNorm;
  std::string name;  // without ".weight"
  std::int64_t dim = 0;
};

struct BlockSpec {
  std::vector<ProjectionSpec> projections;  // in the order in which a step computes them
  std::vector<VectorSpec> vectors;
  // Modules that checkpoints may have and that nothing reads, as transformers passes over them.
  std::vector<std::string> passed_over;

  // REQUIRES: it has a projection of that role.
  const ProjectionSpec& projection(ProjectionRole role) const;
  const VectorSpec* vector(VectorRole role) const;  // null: it has none
};

// Returns "model.layers.N.", with which the names of a layer's modules begin.
std::string layer_prefix(int layer);

}  // namespace pagoda
