// Dynamic temperature: the surer the model, the cooler.
//
// The temperature lies between temperature - dynatemp_range (0 at least) and temperature +
// dynatemp_range. Its place there is a share to the power of dynatemp_exponent: the distribution's
// entropy at temperature 1 over the largest possible one, log(tokens that are not banned).
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
