// Dynamic temperature: the surer the model, the cooler.
//
// Between temperature - dynatemp_range (0 at least) and temperature + dynatemp_range, by the
// distribution's entropy at temperature 1 as a share of its largest possible, log(tokens that are
// not banned), to the power of dynatemp_exponent. kalomaze, 2023; names and formula as in
// llama.cpp.
#pragma once

#include <span>

#include "sampling/sampling_params.h"

namespace pagoda {

// Returns the temperature of a row. logits: [vocab_size], after penalties, the largest `max`;
// weights: [vocab_size], exp(logit - max), whose sum is `total`.
float dynamic_temperature(const SamplingParams& params, std::span<const float> logits, float max,
                          std::span<const float> weights, double total);

}  // namespace pagoda
