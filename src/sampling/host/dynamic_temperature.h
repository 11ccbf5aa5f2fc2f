// Dynamic temperature: the surer the model is, the lower.
//
// The temperature is between temperature - dynatemp_range (at least 0) and temperature +
// dynatemp_range. Its place between them is (entropy / largest entropy) ^ dynatemp_exponent. The
// entropy is the distribution's at temperature 1, the largest one log(tokens that are not banned).
// kalomaze, 2023; names and formula as in llama.cpp.
#pragma once

#include <span>

#include "sampling/sampling_params.h"

namespace pagoda {

// Returns the temperature of a row. logits: [vocab_size], after penalties, the largest `max`;
// weights: [vocab_size], exp(logit - max), whose sum is `total`.
float dynamic_temperature(const SamplingParams& params, std::span<const float> logits, float max,
                          std::span<const float> weights, double total);

}  // namespace pagoda
