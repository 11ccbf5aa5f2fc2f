// KvLayout: what each layer's keys and values look like in memory, and which memory layers share.
//
// Formats, window and heads belong to a layer. Paged and contiguous caches are the same layout with
// another block size: 16 tokens, or as many as the longest context, one block a sequence.
//
// Layers that differ in their windows are in cache groups (kv/cache_groups.h). Memory is in lanes:
// a block has a place in each lane. There it holds one layer of the group that has taken the block.
// It holds several where their entries are smaller than those of other groups' layers. So the
// layers of one group are in different places, and those of different groups in the same ones. With
// one group a lane is a layer.
//
//   lane 0   [ block 0        ][ block 1        ][ block 2        ]
//              layer 0 (int8)    layer 1           layer 0
//              layer 3 (int8)    (bfloat16)        layer 3
//
// A layer that is part p of n in its places finds a block's entries under the number n * block + p.
// So layers of other parts have other block tables, as layers of other groups do.
//
// A layer that reads another one's entries has its form, place and table, and takes no memory (Gemma
// 3n's and 4's late layers).
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
  int source = -1;  // the layer before it whose entries it reads; -1: it has its own
  int group = 0;
  int lane = -1;  // -1: the layer's number
  int part = 0;   // of its place in a block
  int table = 0;  // of KvLayout::tables

  std::int64_t bytes_per_token() const {  // keys and values, with their scales
    return kv_bytes(formats, head_dim) * num_kv_heads;
  }
};

// Numbers that layers read in place of a sequence's blocks in a group: num_parts * block + part.
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
  // Returns what a position takes in all layers that hold it.
  std::int64_t bytes_per_token() const;
  // Returns what queries at the last of so many positions read in all layers, behind their windows
  // and of other layers' entries.
  std::int64_t bytes_read(std::int64_t num_positions) const;
  // Returns what a block takes in all lanes.
  std::int64_t bytes_per_block() const;
  // Returns whether two layers of a lane have their keys' elements, or their values', in the same
  // memory: they take as many bytes of a block.
  bool shares_keys(int layer, int other) const;
  bool shares_values(int layer, int other) const;
};

// Deals layers out into cache groups for contexts of up to max_model_len tokens. Layers that see
// all of a context, and those of each other window, are dealt into groups. All groups have the same
// number of lanes, chosen so that few are left empty. Where formats or heads differ too, each kind
// of layer is dealt apart. Where all layers have one window they stay one group. So they do where
// they would hardly share memory: the group has their longest window then. A layer that reads
// another one's entries follows it.
void deal_into_groups(KvLayout& layout, int max_model_len);

}  // namespace pagoda
