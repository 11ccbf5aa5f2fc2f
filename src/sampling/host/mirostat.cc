#include "sampling/host/mirostat.h"

#include <algorithm>
#include <cmath>

namespace pagoda {
namespace {

// Returns the exponent of Zipf's law: the slope of log probabilities against log ranks, by least
// squares over neighbours. 0: all tokens are equally likely.
double zipf_exponent(std::span<const float> likeliest, float temperature) {
  double sum = 0;
  double squares = 0;
  for (std::size_t i = 0; i + 1 < likeliest.size(); ++i) {
    const double ranks = std::log(static_cast<double>(i + 2) / static_cast<double>(i + 1));
    sum += ranks * ((double{likeliest[i]} - likeliest[i + 1]) / temperature);
    squares += ranks * ranks;
  }
  return sum / squares;
}

}  // namespace

bool MirostatState::is_needed(const SamplingParams& params) {
  return params.mirostat != 0;
}

MirostatState::MirostatState(const SamplingParams& params, int max_output_tokens) {
  mu_.reserve(static_cast<std::size_t>(std::max(max_output_tokens, 0)) + 2);
  mu_.push_back(2 * params.mirostat_tau);
}

void MirostatState::sync(int num_output_tokens) {
  const float last = mu();
  mu_.resize(static_cast<std::size_t>(num_output_tokens) + 1, last);
}

void MirostatState::record(const SamplingParams& params, double surprise) {
  const double error = surprise - params.mirostat_tau;
  mu_.push_back(static_cast<float>(mu() - params.mirostat_eta * error));
}

int mirostat_top_k(std::span<const float> likeliest, float temperature, float mu, int vocab_size) {
  if (likeliest.size() < 2) return 1;
  const double exponent = zipf_exponent(likeliest, temperature);
  const double excess = exponent - 1;
  const double log_size = std::log(static_cast<double>(vocab_size));
  // The limit of the quotient at 0 is the first of these values.
  const double quotient = excess == 0 ? 1 / log_size : excess / -std::expm1(-excess * log_size);
  const double k = std::pow(quotient * std::exp2(double{mu}), 1 / exponent);
  return k < vocab_size ? std::max(1, static_cast<int>(k)) : vocab_size;
}

}  // namespace pagoda
