#include "cli/bench/model_work.h"

#include <algorithm>

#include "model/blocks/per_layer_block.h"
#include "model/family.h"
#include "model/layer_spec.h"

namespace pagoda {
namespace {

double products_of(const ProjectionSpec& projection) {
  return static_cast<double>(projection.rows()) * static_cast<double>(projection.cols);
}

}  // namespace

double layer_products_per_token(const ModelConfig& config) {
  const Family& family = *find_family(config.architecture);
  double products = config.per_layer_width > 0 ? products_of(per_layer_embedding_spec(config)) : 0;
  for (int i = 0; i < config.num_layers(); ++i) {
    const BlockSpec spec = layer_spec(family, config, i);
    for (const ProjectionSpec& projection : spec.projections) products += products_of(projection);
    for (const ExpertsSpec& experts : spec.experts) {
      products += config.layers[i].experts()->rule.num_chosen *
                  static_cast<double>(experts.rows()) * static_cast<double>(experts.cols);
    }
  }
  return products;
}

double head_products_per_row(const ModelConfig& config) {
  return static_cast<double>(config.hidden_size) * config.vocab_size;
}

double attention_products(const ModelConfig& config, std::int64_t num_tokens) {
  double products = 0;
  for (const LayerConfig& each : config.layers) {
    const AttentionConfig& layer = each.attention();
    const std::int64_t width =
        layer.window > 0 ? std::min<std::int64_t>(layer.window, num_tokens) : num_tokens;
    // The first `width` tokens see 1, 2, ... width positions, each later token sees `width`.
    const double pairs = static_cast<double>(width) * static_cast<double>(width + 1) / 2 +
                         static_cast<double>(num_tokens - width) * static_cast<double>(width);
    products += 2 * pairs * layer.num_heads * layer.head_dim;
  }
  return products;
}

}  // namespace pagoda
