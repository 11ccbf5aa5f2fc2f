#include "model/key_smoothing.h"

#include <array>
#include <cmath>
#include <cstddef>

namespace pagoda {
namespace {

// Returns the dimensions of a rotary pair.
std::array<std::size_t, 2> dimensions_of(std::size_t pair, std::size_t num_pairs, RopeStyle style) {
  if (style == RopeStyle::kHalves) return {pair, pair + num_pairs};
  return {2 * pair, 2 * pair + 1};
}

// Returns x * 2^exponent; a NaN where that has other bits than x.
float scaled(float x, int exponent) {
  const float result = std::ldexp(x, exponent);
  return std::ldexp(result, -exponent) == x ? result : std::nanf("");
}

// The mean of a rotation's cosine and sine over positions.
struct MeanTurn {
  double cosine;
  double sine;
};

// Sums the geometric series of e^(i * angle * position).
MeanTurn mean_turn(double angle, int num_positions) {
  const double half_sine = std::sin(angle / 2);
  if (half_sine == 0) return {1, 0};
  const double length = std::sin(num_positions * angle / 2) / (num_positions * half_sine);
  const double middle = (num_positions - 1) * angle / 2;
  return {length * std::cos(middle), length * std::sin(middle)};
}

}  // namespace

void balance_norms(std::span<float> q_norm, std::span<float> k_norm, RopeStyle style) {
  const std::size_t num_pairs = k_norm.size() / 2;
  for (std::size_t pair = 0; pair < num_pairs; ++pair) {
    const auto [a, b] = dimensions_of(pair, num_pairs, style);
    const double ratio = std::hypot(double{k_norm[a]}, double{k_norm[b]}) /
                         std::hypot(double{q_norm[a]}, double{q_norm[b]});
    if (!std::isfinite(ratio) || ratio <= 0) continue;
    const int exponent = static_cast<int>(std::lround(std::log2(ratio) / 2));
    const float scaled_k[2] = {scaled(k_norm[a], -exponent), scaled(k_norm[b], -exponent)};
    const float scaled_q[2] = {scaled(q_norm[a], exponent), scaled(q_norm[b], exponent)};
    if (!std::isfinite(scaled_k[0] + scaled_k[1] + scaled_q[0] + scaled_q[1])) continue;
    k_norm[a] = scaled_k[0];
    k_norm[b] = scaled_k[1];
    q_norm[a] = scaled_q[0];
    q_norm[b] = scaled_q[1];
  }
}

std::vector<float> mean_turned_bias(std::span<const float> bias, const RopeTable& table,
                                    int num_positions) {
  const std::size_t num_pairs = table.inv_freq.size(), head_dim = 2 * num_pairs;
  std::vector<float> means(bias.size());
  for (std::size_t pair = 0; pair < num_pairs; ++pair) {
    const MeanTurn turn = mean_turn(table.inv_freq[pair], num_positions);
    const auto [a, b] = dimensions_of(pair, num_pairs, table.style);
    for (std::size_t head = 0; head < bias.size(); head += head_dim) {
      const double x = bias[head + a], y = bias[head + b];
      means[head + a] = static_cast<float>(x * turn.cosine - y * turn.sine);
      means[head + b] = static_cast<float>(y * turn.cosine + x * turn.sine);
    }
  }
  return means;
}

}  // namespace pagoda
