#include <limits>

#include "ops/argmax/argmax.h"

namespace pagoda::reference {
namespace {

std::int32_t argmax_row(std::span<const float> logits) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::int32_t best = kRowHasNoToken;
  float max = -kInfinity;
  for (std::size_t id = 0; id < logits.size(); ++id) {
    if (!(logits[id] < kInfinity)) return kRowIsNotNumbers;
    if (logits[id] <= max) continue;
    max = logits[id];
    best = static_cast<std::int32_t>(id);
  }
  return best;
}

}  // namespace

Tensor argmax(Exec& exec, const Tensor& logits) {
  const std::int64_t num_rows = logits.extent(0);
  const std::int64_t vocab_size = logits.extent(1);
  Tensor out = exec.allocate(DType::kInt32, {num_rows});
  for (std::int64_t row = 0; row < num_rows; ++row) {
    out.data<std::int32_t>()[row] =
        argmax_row(logits.span<float>().subspan(row * vocab_size, vocab_size));
  }
  return out;
}

}  // namespace pagoda::reference
