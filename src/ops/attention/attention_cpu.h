// What the cpu attention's target-specific code and the code around it share.
#pragma once

#include <cstdint>

#include "ops/attention/attention.h"

namespace pagoda::cpu {

// Keys are walked in tiles of this many positions, at absolute multiples of it.
inline constexpr int kTilePositions = 32;
// Consecutive queries of a sequence that share the loading of a tile.
inline constexpr int kQueriesPerItem = 16;

// Up to kQueriesPerItem queries of one sequence, and the query heads that read one kv head.
struct AttentionItem {
  const float* q = nullptr;  // the first query's first head of the group
  std::int64_t token_stride = 0;
  std::int64_t head_stride = 0;
  float* out = nullptr;  // likewise
  std::int64_t out_token_stride = 0;
  int num_queries = 0;
  int group = 0;  // query heads
  std::int64_t first_position = 0;
  const float* sinks = nullptr;  // [group], or null

  const std::byte* keys = nullptr;  // entry (slot, kv head) begins at slot * slot_stride
  const std::byte* values = nullptr;
  std::int64_t slot_stride = 0;  // bytes
  DType dtype = DType::kFloat32;
  const std::int32_t* blocks = nullptr;
  std::int64_t block_size = 0;
  std::int64_t head_dim = 0;

  float scale = 0;
  int window = 0;
  float soft_cap = 0;
};

}  // namespace pagoda::cpu
