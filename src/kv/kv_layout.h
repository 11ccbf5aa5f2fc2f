// KvLayout: what each layer's keys and values look like in memory, and which of it layers share.
//
// Formats, window and heads belong to a layer. Paged and contiguous caches are the same layout with
// another block size: 16 tokens, or as many as the longest context, one block a sequence.
//
// Where layers differ in their windows they are in cache groups (kv/cache_groups.h), each of which
// has a block table. Memory is in lanes: a block has a part of each lane, and holds in it one layer
// of the group that has taken the block. So the layers of a group are in lanes of their own, and
// those of other groups in the same ones. With one group a lane is a layer.
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
  int group = 0;
  int lane = -1;  // -1: the layer's number

  std::int64_t bytes_per_token() const {  // keys and values, with their scales
    return kv_bytes(formats, head_dim) * num_kv_heads;
  }
};

struct KvLayout {
  int block_size = 16;  // tokens
  std::vector<LayerKvLayout> layers;
  std::vector<int> group_windows = {0};  // of each cache group; 0: all positions are seen

  int num_groups() const { return static_cast<int>(group_windows.size()); }
  int num_lanes() const;
  int lane_of(int layer) const { return layers[layer].lane < 0 ? layer : layers[layer].lane; }
  // Returns what a position takes in all layers that hold it.
  std::int64_t bytes_per_token() const;
  // Returns what a block takes in all lanes.
  std::int64_t bytes_per_block() const;
};

// Deals layers out into cache groups for contexts of up to max_model_len tokens. Layers that see all
// of a context, and those of each other window, are dealt into groups of as many lanes, so many that
// few are left empty. Layers of one window, or whose entries differ otherwise, stay one group, of
// the longest window.
void deal_into_groups(KvLayout& layout, int max_model_len);

}  // namespace pagoda
