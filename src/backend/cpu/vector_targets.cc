#include "backend/cpu/vector_targets.h"

#include "hwy/targets.h"

namespace pagoda::cpu {

std::vector<VectorTarget> vector_targets() {
  std::vector<VectorTarget> targets;
  // Better targets have lower bits.
  for (std::int64_t rest = hwy::SupportedTargets(); rest != 0; rest &= rest - 1) {
    targets.push_back({rest & -rest, hwy::TargetName(rest & -rest)});
  }
  return targets;
}

OnlyVectorTarget::OnlyVectorTarget(const VectorTarget& target) {
  hwy::SetSupportedTargetsForTest(target.id);
  choose_vector_target();
}

OnlyVectorTarget::~OnlyVectorTarget() {
  hwy::SetSupportedTargetsForTest(0);
  choose_vector_target();
}

void choose_vector_target() {
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace pagoda::cpu
