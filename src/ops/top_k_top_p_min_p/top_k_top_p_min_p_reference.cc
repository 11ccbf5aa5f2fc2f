#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "draw/token_weight.h"
#include "ops/top_k_top_p_min_p/top_k_top_p_min_p.h"

namespace pagoda::reference {
namespace {

struct Filters {
  int top_k;
  float top_p;
  float min_p_margin;
};

// Returns the ids of the kept tokens, likeliest first.
std::vector<int> kept_ids(std::span<const float> logits, float inverse_temperature,
                          const Filters& filters) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float x : logits) {
    if (!(x < kInfinity)) return {};
  }
  std::vector<int> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::erase_if(ids, [&](int id) { return logits[id] == -kInfinity; });
  std::stable_sort(ids.begin(), ids.end(), [&](int a, int b) { return logits[a] > logits[b]; });
  if (ids.empty()) return ids;
  const float max = logits[ids[0]];
  std::erase_if(ids, [&](int id) { return logits[id] < max + filters.min_p_margin; });
  if (filters.top_k > 0 && filters.top_k < static_cast<int>(ids.size())) {
    const float least = logits[ids[filters.top_k - 1]];
    std::erase_if(ids, [&](int id) { return logits[id] < least; });
  }
  if (filters.top_p >= 1) return ids;
  std::int64_t total = 0;
  for (const int id : ids) total += token_weight(logits[id], max, inverse_temperature);
  const std::int64_t target =
      std::max<std::int64_t>(1, share_of(total, fraction_of(filters.top_p)));
  std::int64_t reached = 0;
  std::size_t size = 0;
  while (reached < target && size < ids.size())
    reached += token_weight(logits[ids[size++]], max, inverse_temperature);
  ids.resize(size);
  return ids;
}

}  // namespace

KeptTokens top_k_top_p_min_p(Exec& exec, const Tensor& logits, const Tensor& inverse_temperature,
                             const RowFilters& filters) {
  const std::int64_t num_rows = logits.extent(0);
  const std::int64_t vocab_size = logits.extent(1);
  KeptTokens kept{.least = exec.allocate(DType::kFloat32, {num_rows}),
                  .num_ties = exec.allocate(DType::kInt32, {num_rows})};
  for (std::int64_t row = 0; row < num_rows; ++row) {
    const auto values = logits.span<float>().subspan(row * vocab_size, vocab_size);
    const std::vector<int> ids =
        kept_ids(values, inverse_temperature.data<float>()[row],
                 {.top_k = filters.top_k.data<std::int32_t>()[row],
                  .top_p = filters.top_p.data<float>()[row],
                  .min_p_margin = filters.min_p_margin.data<float>()[row]});
    const float least = ids.empty() ? 0 : values[ids.back()];
    kept.least.data<float>()[row] = least;
    kept.num_ties.data<std::int32_t>()[row] = static_cast<std::int32_t>(
        std::count_if(ids.begin(), ids.end(), [&](int id) { return values[id] == least; }));
  }
  return kept;
}

}  // namespace pagoda::reference
