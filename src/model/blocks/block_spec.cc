#include "model/blocks/block_spec.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/check.h"

namespace pagoda {

std::int64_t ProjectionSpec::rows() const {
  std::int64_t rows = 0;
  for (const ProjectionPart& part : parts) rows += part.rows;
  return rows;
}

namespace {

template <typename T>
void move_behind(std::vector<T>& all, std::vector<T> more) {
  all.insert(all.end(), std::move_iterator(more.begin()), std::move_iterator(more.end()));
}

}  // namespace

void BlockSpec::append(BlockSpec more) {
  move_behind(projections, std::move(more.projections));
  move_behind(experts, std::move(more.experts));
  move_behind(vectors, std::move(more.vectors));
  move_behind(passed_over, std::move(more.passed_over));
}

const ProjectionSpec& BlockSpec::projection(ProjectionRole role) const {
  const auto found = std::ranges::find(projections, role, &ProjectionSpec::role);
  PAGODA_CHECK(found != projections.end(), "a block asks for a projection of its own spec");
  return *found;
}

std::int64_t ExpertsSpec::rows() const {
  std::int64_t rows = 0;
  for (const ExpertPart& part : parts) rows += part.rows;
  return rows;
}

const ExpertsSpec& BlockSpec::experts_of(ExpertRole role) const {
  const auto found = std::ranges::find(experts, role, &ExpertsSpec::role);
  PAGODA_CHECK(found != experts.end(), "a block asks for experts that its spec lacks");
  return *found;
}

const VectorSpec* BlockSpec::vector(VectorRole role) const {
  const auto found = std::ranges::find(vectors, role, &VectorSpec::role);
  return found == vectors.end() ? nullptr : &*found;
}

}  // namespace pagoda
