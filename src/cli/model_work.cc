#include "cli/model_work.h"

#include <algorithm>

namespace pagoda {

double layer_products_per_token(const ModelConfig& config) {
  const double hidden = config.hidden_size;
  double products = 0;
  for (const LayerConfig& layer : config.layers) {
    const double q_dim = static_cast<double>(layer.num_heads) * layer.head_dim;
    const double kv_dim = static_cast<double>(layer.num_kv_heads) * layer.head_dim;
    const int num_kv = layer.kv_source >= 0 ? 0 : layer.keys_are_values ? 1 : 2;
    products += hidden * (q_dim + num_kv * kv_dim) + q_dim * hidden;
    products += 3 * hidden * layer.intermediate_size;
    products += 3 * hidden * config.per_layer_width;
  }
  return products;
}

double head_products_per_row(const ModelConfig& config) {
  return static_cast<double>(config.hidden_size) * config.vocab_size;
}

double attention_products(const ModelConfig& config, std::int64_t num_tokens) {
  double products = 0;
  for (const LayerConfig& layer : config.layers) {
    const std::int64_t width =
        layer.window > 0 ? std::min<std::int64_t>(layer.window, num_tokens) : num_tokens;
    // The first `width` tokens see 1, 2, ... width positions, the others width each.
    const double pairs = static_cast<double>(width) * static_cast<double>(width + 1) / 2 +
                         static_cast<double>(num_tokens - width) * static_cast<double>(width);
    products += 2 * pairs * layer.num_heads * layer.head_dim;
  }
  return products;
}

}  // namespace pagoda
