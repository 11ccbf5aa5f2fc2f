#include <algorithm>
#include <cmath>

#include "draw/token_weight.h"
#include "ops/sample/sample.h"

namespace pagoda::reference {
namespace {

struct Draw {
  float inverse_temperature;
  std::int64_t fraction;
  bool is_filtered;
  float least;  // the least kept logit, if tokens are filtered
  int num_ties;
};

std::int32_t draw_row(std::span<const float> logits, const Draw& draw) {
  const float max = *std::max_element(logits.begin(), logits.end());
  std::vector<std::int64_t> weights(logits.size());
  std::int64_t total = 0;
  int num_ties = 0;
  for (std::size_t id = 0; id < logits.size(); ++id) {
    if (draw.is_filtered) {
      if (logits[id] < draw.least) continue;
      if (logits[id] == draw.least && ++num_ties > draw.num_ties) continue;
    }
    weights[id] = token_weight(logits[id], max, draw.inverse_temperature);
    total += weights[id];
  }
  const std::int64_t target = share_of(total, draw.fraction);
  std::int64_t reached = 0;
  std::int32_t id = -1;
  while (reached <= target) reached += weights[++id];
  return id;
}

}  // namespace

Tensor sample(Exec& exec, const Tensor& logits, const SampleArgs& args) {
  const std::int64_t num_rows = logits.extent(0);
  const std::int64_t vocab_size = logits.extent(1);
  // The likeliest token of each row, or the number that says why there is none.
  Tensor out = reference::argmax(exec, logits);
  KeptTokens kept;
  if (args.filters != nullptr) {
    kept = reference::top_k_top_p_min_p(exec, logits, args.inverse_temperature, *args.filters);
  }
  for (std::int64_t row = 0; row < num_rows; ++row) {
    const float inverse_temperature = args.inverse_temperature.data<float>()[row];
    std::int32_t& id = out.data<std::int32_t>()[row];
    if (id < 0 || inverse_temperature == kGreedyInverseTemperature) continue;
    const std::int32_t* uniform = args.uniforms.data<std::int32_t>() + 2 * row;
    const bool is_filtered = args.filters != nullptr;
    id = draw_row(logits.span<float>().subspan(row * vocab_size, vocab_size),
                  {.inverse_temperature = inverse_temperature,
                   .fraction = (std::int64_t{uniform[0]} << 31) + uniform[1],
                   .is_filtered = is_filtered,
                   .least = is_filtered ? kept.least.data<float>()[row] : 0,
                   .num_ties = is_filtered ? kept.num_ties.data<std::int32_t>()[row] : 0});
  }
  return out;
}

}  // namespace pagoda::reference
