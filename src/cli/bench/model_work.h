// Counts the products (multiply-adds) that a model's tokens need on any backend. Prefill's GMAC/s
// are this count per second.
#pragma once

#include <cstdint>

#include "model/model_config.h"

namespace pagoda {

// Counts the products of all layers' linear ops. REQUIRES: find_family(config.architecture) exists.
double layer_products_per_token(const ModelConfig& config);
double head_products_per_row(const ModelConfig& config);  // hidden state to logits

// Returns the products of attention (scores and weighted values) for a whole prompt of
// `num_tokens`. A token attends to itself and to earlier tokens within its layer's window.
double attention_products(const ModelConfig& config, std::int64_t num_tokens);

}  // namespace pagoda
