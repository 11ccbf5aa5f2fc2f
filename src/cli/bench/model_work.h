// The products (multiply-adds) that a model's tokens take, whatever computes them: what prefill is
// held to.
#pragma once

#include <cstdint>

#include "model/model_config.h"

namespace pagoda {

// Counts those of all layers' linear ops. REQUIRES: an architecture of a family.
double layer_products_per_token(const ModelConfig& config);
double head_products_per_row(const ModelConfig& config);  // hidden state to logits

// Returns the products of scores and weighted values of a whole prompt of `num_tokens`: a token
// sees itself and what came before it, within its layer's window.
double attention_products(const ModelConfig& config, std::int64_t num_tokens);

}  // namespace pagoda
