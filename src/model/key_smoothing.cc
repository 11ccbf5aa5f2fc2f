#include "model/key_smoothing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <utility>

#include "quant/tensor_rows.h"

namespace pagoda {
namespace {

// Returns the dimensions of a rotary pair.
std::array<std::size_t, 2> dimensions_of(std::size_t pair, std::size_t num_pairs, RopeStyle style) {
  if (style == RopeStyle::kHalves) return {pair, pair + num_pairs};
  return {2 * pair, 2 * pair + 1};
}

// Returns the exponent e that balances a pair; 0 if a size is zero or not finite.
int balancing_exponent(double k_size, double q_size) {
  const double ratio = k_size / q_size;
  if (!std::isfinite(ratio) || ratio <= 0) return 0;
  return static_cast<int>(std::lround(std::log2(ratio) / 2));
}

// Returns x * 2^exponent, or a NaN if this loses bits.
float scaled(float x, int exponent) {
  const float result = std::ldexp(x, exponent);
  return std::ldexp(result, -exponent) == x ? result : std::nanf("");
}

// The mean of a rotation's cosine and sine over positions.
struct MeanRotation {
  double cosine;
  double sine;
};

// Sums the geometric series of e^(i * angle * position).
MeanRotation mean_rotation(double angle, int num_positions) {
  const double half_sine = std::sin(angle / 2);
  if (half_sine == 0) return {1, 0};
  const double length = std::sin(num_positions * angle / 2) / (num_positions * half_sine);
  const double middle = (num_positions - 1) * angle / 2;
  return {length * std::cos(middle), length * std::sin(middle)};
}

// The rows of a projection's heads, accessed by head and rotary pair.
class PairRows {
 public:
  PairRows(const HeadProjection& heads, int head_dim)
      : heads_(heads),
        head_dim_(static_cast<std::size_t>(head_dim)),
        values_(heads.weight.shape[1]),
        exponents_(static_cast<std::size_t>(heads.weight.shape[0])) {}

  // Adds up the squares of the pair's weights in one head.
  double sum_of_squares(std::size_t head, std::array<std::size_t, 2> pair) {
    double sum = 0;
    for (const std::size_t i : pair) {
      read_row(heads_.weight, row_of(head, i), values_.data());
      sum += std::transform_reduce(values_.begin(), values_.end(), 0.0, std::plus<>(),
                                   [](float value) { return double{value} * value; });
    }
    return sum;
  }

  ExponentRange exact_exponents(std::size_t head, std::array<std::size_t, 2> pair) const {
    ExponentRange range;
    for (const std::size_t i : pair) {
      range.intersect(pagoda::exact_exponents(heads_.weight, row_of(head, i)));
      if (heads_.bias) range.intersect(pagoda::exact_exponents(*heads_.bias, row_of(head, i)));
    }
    return range;
  }

  void set_exponent(std::size_t head, std::array<std::size_t, 2> pair, int exponent) {
    for (const std::size_t i : pair) exponents_[row_of(head, i)] = exponent;
    has_changes_ = has_changes_ || exponent != 0;
  }

  // Multiplies the rows by their powers of two.
  void scale() {
    if (!has_changes_) return;
    for (HostTensor* tensor : {&heads_.weight, heads_.bias}) {
      if (tensor == nullptr) continue;
      HostTensor scaled = scale_rows(*tensor, exponents_);
      release_pages(*tensor);
      *tensor = std::move(scaled);
    }
  }

 private:
  std::int64_t row_of(std::size_t head, std::size_t dimension) const {
    return static_cast<std::int64_t>(head * head_dim_ + dimension);
  }

  HeadProjection heads_;
  std::size_t head_dim_;
  std::vector<float> values_;   // of a row
  std::vector<int> exponents_;  // of all rows
  bool has_changes_ = false;
};

// The sizes of a rotary pair in one head of keys, and in the query heads that read it.
struct PairBalance {
  double k_squares;  // of the pair's weights
  double q_squares;  // likewise, the mean over the query heads
  int exponent;      // the exact one that is nearest to balance
};

PairBalance balance_pair(PairRows& q, PairRows& k, std::size_t head, std::size_t group,
                         std::array<std::size_t, 2> pair) {
  const ExponentRange of_keys = k.exact_exponents(head, pair);
  ExponentRange range = {.least = -of_keys.most, .most = -of_keys.least};
  double q_squares = 0;
  for (std::size_t query = head * group; query < (head + 1) * group; ++query) {
    q_squares += q.sum_of_squares(query, pair) / static_cast<double>(group);
    range.intersect(q.exact_exponents(query, pair));
  }
  const double k_squares = k.sum_of_squares(head, pair);
  const int wanted = balancing_exponent(std::sqrt(k_squares), std::sqrt(q_squares));
  return {.k_squares = k_squares,
          .q_squares = q_squares,
          .exponent = std::clamp(wanted, range.least, range.most)};
}

// Returns whether the exponents lower the error of scores by at least a fifth. This error grows
// with the norm of the key, which determines its codes' error, times the norm of the query.
bool is_worthwhile(std::span<const PairBalance> pairs) {
  constexpr double kLargestShare = 0.8;
  double k_before = 0, q_before = 0, k_after = 0, q_after = 0;
  for (const PairBalance& pair : pairs) {
    k_before += pair.k_squares;
    q_before += pair.q_squares;
    k_after += std::ldexp(pair.k_squares, -2 * pair.exponent);
    q_after += std::ldexp(pair.q_squares, 2 * pair.exponent);
  }
  return std::sqrt(k_after * q_after) <= kLargestShare * std::sqrt(k_before * q_before);
}

}  // namespace

void balance_norms(std::span<float> q_norm, std::span<float> k_norm, const RopeTable& table) {
  const std::size_t num_pairs = table.inv_freq.size();
  for (std::size_t pair = 0; pair < num_pairs; ++pair) {
    const auto [a, b] = dimensions_of(pair, num_pairs, table.style);
    const int exponent = balancing_exponent(std::hypot(double{k_norm[a]}, double{k_norm[b]}),
                                            std::hypot(double{q_norm[a]}, double{q_norm[b]}));
    const float scaled_k[2] = {scaled(k_norm[a], -exponent), scaled(k_norm[b], -exponent)};
    const float scaled_q[2] = {scaled(q_norm[a], exponent), scaled(q_norm[b], exponent)};
    if (!std::isfinite(scaled_k[0] + scaled_k[1] + scaled_q[0] + scaled_q[1])) continue;
    k_norm[a] = scaled_k[0];
    k_norm[b] = scaled_k[1];
    q_norm[a] = scaled_q[0];
    q_norm[b] = scaled_q[1];
  }
}

void balance_projections(const HeadProjection& queries, const HeadProjection& keys, int head_dim,
                         const RopeTable& table) {
  PairRows q(queries, head_dim), k(keys, head_dim);
  const std::size_t num_pairs = table.inv_freq.size();
  const auto group = static_cast<std::size_t>(queries.num_heads / keys.num_heads);
  for (std::size_t head = 0; head < static_cast<std::size_t>(keys.num_heads); ++head) {
    std::vector<PairBalance> balances;
    for (std::size_t i = 0; i < num_pairs; ++i)
      balances.push_back(balance_pair(q, k, head, group, dimensions_of(i, num_pairs, table.style)));
    if (!is_worthwhile(balances)) continue;
    for (std::size_t i = 0; i < num_pairs; ++i) {
      const std::array<std::size_t, 2> pair = dimensions_of(i, num_pairs, table.style);
      k.set_exponent(head, pair, -balances[i].exponent);
      for (std::size_t query = head * group; query < (head + 1) * group; ++query)
        q.set_exponent(query, pair, balances[i].exponent);
    }
  }
  q.scale();
  k.scale();
}

std::vector<float> mean_rotated_bias(std::span<const float> bias, const RopeTable& table,
                                     int head_dim, int num_positions) {
  const std::size_t num_pairs = table.inv_freq.size();
  std::vector<float> means(bias.begin(), bias.end());  // an unrotated element is its own mean
  for (std::size_t pair = 0; pair < num_pairs; ++pair) {
    const MeanRotation rotation = mean_rotation(table.inv_freq[pair], num_positions);
    const auto [a, b] = dimensions_of(pair, num_pairs, table.style);
    for (std::size_t head = 0; head < bias.size(); head += head_dim) {
      const double x = bias[head + a], y = bias[head + b];
      means[head + a] =
          static_cast<float>((x * rotation.cosine - y * rotation.sine) * table.factor);
      means[head + b] =
          static_cast<float>((y * rotation.cosine + x * rotation.sine) * table.factor);
    }
  }
  return means;
}

}  // namespace pagoda
