// KvLayout: what each layer's keys and values look like in memory.
//
// Formats, window and heads belong to a layer. Paged and contiguous caches are the same layout with
// another block size: 16 tokens, or as many as the longest context, one block a sequence.
#pragma once

#include <cstdint>
#include <vector>

#include "core/kv_format.h"

namespace pagoda {

struct LayerKvLayout {
  KvFormats formats;
  int num_kv_heads = 0;
  int head_dim = 0;
  int window = 0;  // positions that a query sees, its own included; 0: all

  std::int64_t bytes_per_token() const {  // keys and values, with their scales
    return kv_bytes(formats, head_dim) * num_kv_heads;
  }
};

struct KvLayout {
  int block_size = 16;  // tokens
  std::vector<LayerKvLayout> layers;

  std::int64_t bytes_per_token() const {
    std::int64_t bytes = 0;
    for (const LayerKvLayout& layer : layers) bytes += layer.bytes_per_token();
    return bytes;
  }
  std::int64_t bytes_per_block() const { return bytes_per_token() * block_size; }
};

}  // namespace pagoda
