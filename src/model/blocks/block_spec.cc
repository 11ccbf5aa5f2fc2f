#include "model/blocks/block_spec.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/check.h"

namespace pagoda {
std::int64_t ProjectionSpec::rows() const {
  std::int64_t rows = 0;
  for (const ProjectionPart& part : parts) rows += part.rows;
  return rows;
}

const ProjectionSpec& BlockSpec::projection(ProjectionRole role) const {
  const auto found = std::ranges::find(projections, role, &ProjectionSpec::role);
  PAGODA_CHECK(found != projections.end(), "a block asks for a projection of its own spec");
  return *found;
}

const VectorSpec* BlockSpec::vector(VectorRole role) const {
  const auto found = std::ranges::find(vectors, role, &VectorSpec::role);
  return found == vectors.end() ? nullptr : &*found;
}

std::string layer_prefix(int layer) {
  return fmt::format("model.layers.{}.", layer);
}

}  // namespace pagoda
