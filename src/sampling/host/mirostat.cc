#include "sampling/host/mirostat.h"

#include <algorithm>

namespace pagoda {

bool MirostatState::is_needed(const SamplingParams& params) {
  return params.mirostat == 2;
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

}  // namespace pagoda
