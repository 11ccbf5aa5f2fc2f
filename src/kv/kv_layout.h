// KvLayout: how each layer's keys and values lie in memory, and which layers share memory.
//
// Each layer has its own formats, window and heads. Paged and contiguous caches differ only in the
// block size: 16 tokens, or the longest context with one block per sequence.
//
// Layers with different windows are in different cache groups (kv/cache_groups.h). Memory is
// divided into lanes, and a block has a place in each lane. Each place holds one layer of the group
// that has taken the block. It holds several layers if their entries are smaller than those of
// other groups' layers. So the layers of one group have different places, and layers of different
// groups may have the same place. With one group each layer has its own lane.
//
//   lane 0   [ block 0        ][ block 1        ][ block 2        ]
//              layer 0 (int8)    layer 1           layer 0
//              layer 3 (int8)    (bfloat16)        layer 3
//
// A place may hold n layers. The layer that is part p of them reads block b of the pool under the
// number n * b + p. So layers of other parts have other block tables, like layers of other groups.
//
// A layer that reads another layer's entries (late layers of Gemma 3n and Gemma 4) has that layer's
// form, place and table. It takes no memory.
#pragma once

#include <cstdint>
#include <vector>

#include "core/kv_format.h"

namespace pagoda {

struct LayerKvLayout {
  KvFormats formats;
  int num_kv_heads = 0;
  int head_dim = 0;
  int window = 0;   // positions that a query sees, its own included; 0: all
  int source = -1;  // the earlier layer whose entries it reads; -1: it has its own
  int group = 0;
  int lane = -1;  // -1: the layer's number
  int part = 0;   // its index among the layers in its place
  int table = 0;  // index in KvLayout::tables

  std::int64_t bytes_per_token() const {  // keys and values, with their scales
    return kv_bytes(formats, head_dim) * num_kv_heads;
  }
};

// A block table as layers read it: num_parts * block + part for each block of a sequence in the
// group.
struct KvTable {
  int group = 0;
  int part = 0;
  int num_parts = 1;

  bool operator==(const KvTable&) const = default;
};

struct KvLayout {
  int block_size = 16;  // tokens
  std::vector<LayerKvLayout> layers;
  std::vector<int> group_windows = {0};  // of each cache group; 0: all positions are seen
  std::vector<KvTable> tables = {{}};

  int num_parts(int layer) const { return tables[layers[layer].table].num_parts; }
  int num_groups() const { return static_cast<int>(group_windows.size()); }
  int num_lanes() const;
  int lane_of(int layer) const {
    const LayerKvLayout& own = layers[layer];
    if (own.lane >= 0) return own.lane;
    return own.source < 0 ? layer : own.source;
  }
  // Returns the bytes that a position takes in all layers together.
  std::int64_t bytes_per_token() const;
  // Returns the bytes that a query at the last of num_positions positions reads in all layers.
  // Layers with a window read only that. Layers that read another layer's entries count too.
  std::int64_t bytes_read(std::int64_t num_positions) const;
  // Returns the bytes that a block takes in all lanes together.
  std::int64_t bytes_per_block() const;
  // Returns whether two layers of a lane have the elements of their keys, or of their values, in
  // the same memory. They do if these take equally many bytes of a block.
  bool shares_keys(int layer, int other) const;
  bool shares_values(int layer, int other) const;
};

// Divides the layers into cache groups for contexts of up to max_model_len tokens. Layers with
// different windows, formats or heads are in different groups. All groups have the same number of
// lanes, chosen so that few places are empty. If all layers have the same window they stay one
// group. They also do if they would hardly share memory: then the group has the longest window. A
// layer that reads another layer's entries is in that layer's group.
void deal_into_groups(KvLayout& layout, int max_model_len);

}  // namespace pagoda
