#include "ops/sample/row_cases.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "ops/op_case.h"
#include "ops/sample/sample.h"

namespace pagoda {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::array<float, 7> kTemperatures = {1.0f, 0.7f, 0.25f, 1.7f, 100.0f, 1e-4f, 3e38f};
constexpr int kGreedyPeriod = 5;

float temperature_of(int row) {
  return kTemperatures[row % kTemperatures.size()];
}

}  // namespace

std::vector<float> case_logits(int row, int vocab_size) {
  const auto seed = static_cast<std::uint32_t>(100 + row);
  // bfloat16 values: in a row of thousands many are equal.
  std::vector<float> logits = random_values(seed, vocab_size, row % 3 == 0 ? 0.5f : 12.0f);
  std::mt19937 random(seed);
  switch (row % 8) {
    case 2:  // few may be chosen
      for (float& x : logits) x = random() % 16 == 0 ? x : -kInfinity;
      logits[random() % logits.size()] = 1;
      break;
    case 3:  // only one may be chosen
      for (float& x : logits) x = -kInfinity;
      logits[random() % logits.size()] = -3e38f;
      break;
    case 4:  // all are equal
      for (float& x : logits) x = -2.5f;
      break;
    case 5:  // a row that is no distribution
      logits[random() % logits.size()] = row % 16 < 8 ? std::nanf("") : kInfinity;
      break;
    case 6:  // peaked
      logits[random() % logits.size()] = 40;
      break;
    case 7:  // no token, or the largest distances
      for (float& x : logits) x = row % 16 < 8 ? -kInfinity : x * 2e37f;
      break;
    default:
      break;
  }
  return logits;
}

Tensor upload_case_logits(Exec& exec, std::span<const int> rows, int vocab_size) {
  std::vector<float> values;
  for (const int row : rows) {
    const std::vector<float> logits = case_logits(row, vocab_size);
    values.insert(values.end(), logits.begin(), logits.end());
  }
  return exec.upload<float>(values, {static_cast<std::int64_t>(rows.size()), vocab_size});
}

Tensor upload_case_temperatures(Exec& exec, std::span<const int> rows, bool with_greedy) {
  std::vector<float> values;
  for (const int row : rows) {
    const bool is_greedy = with_greedy && row % kGreedyPeriod == kGreedyPeriod - 1;
    values.push_back(is_greedy ? kGreedyInverseTemperature : 1 / temperature_of(row));
  }
  return exec.upload<float>(values, {static_cast<std::int64_t>(rows.size())});
}

RowFilters upload_case_filters(Exec& exec, std::span<const int> rows, int vocab_size) {
  constexpr std::array<int, 6> kTopK = {0, 1, 40, 3, 1 << 20, 300};
  constexpr std::array<float, 7> kTopP = {1, 0.9f, 0.5f, 0.99999994f, 1e-30f, 1, 0.999f};
  constexpr std::array<float, 5> kMinP = {0, 0, 0.05f, 1, 1e-3f};
  std::vector<std::int32_t> top_k;
  std::vector<float> top_p, margins;
  for (const int row : rows) {
    // The first three rows have one filter each.
    top_k.push_back(row == 0 ? vocab_size / 2 : row < 3 ? 0 : kTopK[row % kTopK.size()]);
    top_p.push_back(row == 1 ? 0.9f : row < 3 ? 1 : kTopP[row % kTopP.size()]);
    const float min_p = row == 2 ? 0.1f : row < 3 ? 0 : kMinP[row % kMinP.size()];
    margins.push_back(min_p_margin(min_p, temperature_of(row)));
  }
  const Shape shape = {static_cast<std::int64_t>(rows.size())};
  return {.top_k = exec.upload<std::int32_t>(top_k, shape),
          .top_p = exec.upload<float>(top_p, shape),
          .min_p_margin = exec.upload<float>(margins, shape)};
}

}  // namespace pagoda
