// The tokens that a row may still draw after the filters so far.
#pragma once

#include <cstddef>
#include <span>

namespace pagoda {

// Every span is [size], in the order of the token ids.
struct Candidates {
  std::span<int> ids;
  std::span<float> logits;
  std::span<float> weights;  // exp((logit - max) / temperature), max: the row's largest logit

  std::size_t size() const { return ids.size(); }
  Candidates first(std::size_t count) const {
    return {ids.first(count), logits.first(count), weights.first(count)};
  }
};

inline double total_weight(const Candidates& candidates) {
  double total = 0;
  for (const float weight : candidates.weights) total += weight;
  return total;
}

// Moves the candidates i with keep(i) to the front, in their order. Returns their number.
template <typename Keep>
std::size_t keep_if(const Candidates& candidates, const Keep& keep) {
  std::size_t num_kept = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const bool kept = keep(i);
    candidates.ids[num_kept] = candidates.ids[i];
    candidates.logits[num_kept] = candidates.logits[i];
    candidates.weights[num_kept] = candidates.weights[i];
    num_kept += kept ? 1 : 0;
  }
  return num_kept;
}

}  // namespace pagoda
