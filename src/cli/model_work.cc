#include "cli/model_work.h"

#include <algorithm>

namespace pagoda {

double layer_products_per_token(const ModelConfig& config) {
  const double hidden = config.hidden_size;
  const double q_dim = static_cast<double>(config.num_heads) * config.head_dim;
  const double kv_dim = static_cast<double>(config.num_kv_heads) * config.head_dim;
  const double attention = hidden * (q_dim + 2 * kv_dim) + q_dim * hidden;
  const double mlp = 3 * hidden * config.intermediate_size;
  return config.num_layers * (attention + mlp);
}

double head_products_per_row(const ModelConfig& config) {
  return static_cast<double>(config.hidden_size) * config.vocab_size;
}

double attention_products(const ModelConfig& config, std::int64_t num_tokens) {
  double pairs = 0;  // of a query and a position that it sees, in all layers
  for (const int window : config.layer_windows) {
    const std::int64_t width = window > 0 ? std::min<std::int64_t>(window, num_tokens) : num_tokens;
    // The first `width` tokens see 1, 2, ... width positions, the others width each.
    pairs += static_cast<double>(width) * static_cast<double>(width + 1) / 2 +
             static_cast<double>(num_tokens - width) * static_cast<double>(width);
  }
  return 2 * pairs * config.num_heads * config.head_dim;
}

}  // namespace pagoda
