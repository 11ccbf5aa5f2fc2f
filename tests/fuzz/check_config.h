// Checks what must hold for every config that a reader accepts, whatever its source.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "model/model_config.h"

namespace pagoda {

inline void check_config(const ModelConfig& config) {
  PAGODA_CHECK(config.num_layers() > 0, "a config that was accepted has layers");
  for (int i = 0; i < config.num_layers(); ++i) {
    const AttentionConfig& layer = config.layers[i].attention();
    const RopeTable& table = config.rope_tables.at(layer.rope_table);
    PAGODA_CHECK(is_rotary_width(table.rotary_dim(), layer.head_dim) &&
                     std::ranges::all_of(table.inv_freq, [](float x) { return std::isfinite(x); }),
                 "a config that was accepted has rotations of its heads");
    PAGODA_CHECK(layer.num_heads % layer.num_kv_heads == 0 && config.layers[i].mlp_width() > 0,
                 "a config that was accepted has heads that keys' heads divide");
    if (layer.kv_source < 0) continue;
    PAGODA_CHECK(layer.kv_source < i, "a layer reads the cache of one before it");
    const AttentionConfig& source = config.layers[layer.kv_source].attention();
    PAGODA_CHECK(source.kv_source < 0 && source.head_dim == layer.head_dim &&
                     source.num_kv_heads == layer.num_kv_heads && source.window == layer.window &&
                     source.rope_table == layer.rope_table,
                 "a layer reads the cache of one that has its own, in the same form");
  }
}

}  // namespace pagoda
