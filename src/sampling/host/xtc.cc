#include "sampling/host/xtc.h"

namespace pagoda {

std::size_t exclude_top_choices(const Candidates& candidates, float threshold) {
  const double least = threshold * total_weight(candidates);
  const auto is_top = [&](std::size_t i) { return candidates.weights[i] >= least; };
  std::size_t num_top = 0;
  std::size_t stays = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (!is_top(i)) continue;
    if (num_top == 0 || candidates.logits[i] <= candidates.logits[stays]) stays = i;
    ++num_top;
  }
  if (num_top < 2) return candidates.size();
  return keep_if(candidates, [&](std::size_t i) { return i == stays || !is_top(i); });
}

}  // namespace pagoda
