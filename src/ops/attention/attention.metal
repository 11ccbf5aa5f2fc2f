// Attention of one query of one head: a threadgroup of NUM_GROUPS SIMD groups.
//
// Keys are read in tiles of 32 positions, a lane a key, at fixed absolute positions: tile i by
// SIMD group i mod NUM_GROUPS, in ascending order, with a running maximum. The groups' parts are
// merged in order. So a query's bits are a function of its position, its window and its sequence's
// entries alone.
//
// q [tokens, HEADS, HEAD_DIM]; keys, values [blocks, BLOCK_SIZE, KV_HEADS, HEAD_DIM];
// positions, sequences [tokens], -1: padding; tables [seqs, max_blocks]; settings: scale, soft cap;
// sinks [HEADS] if HAS_SINKS; out [tokens, HEADS * HEAD_DIM]
constexpr int kLanes = 32;
constexpr int kNumThreads = kLanes * NUM_GROUPS;
constexpr int kPerLane = (HEAD_DIM + kLanes - 1) / kLanes;
threadgroup float query[HEAD_DIM];
threadgroup float group_largest[NUM_GROUPS];
threadgroup float group_total[NUM_GROUPS];
threadgroup float group_sums[NUM_GROUPS * HEAD_DIM];
threadgroup float tile_weights[kNumThreads];
threadgroup int tile_slots[kNumThreads];

const int head = int(threadgroup_position_in_grid.x);
const int token = int(threadgroup_position_in_grid.y);
const int thread_id = int(thread_index_in_threadgroup);
const int group = int(simdgroup_index_in_threadgroup);
const int lane = int(thread_index_in_simdgroup);
const size_t row = (size_t(token) * HEADS + head) * HEAD_DIM;
const int sequence = sequences[token];
if (sequence < 0) {
  for (int d = thread_id; d < HEAD_DIM; d += kNumThreads) out[row + d] = Out(0.0f);
  return;
}
for (int d = thread_id; d < HEAD_DIM; d += kNumThreads) query[d] = float(q[row + d]);
metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);

const int position = positions[token];
const int first = WINDOW > 0 ? metal::max(position - WINDOW + 1, 0) : 0;
const int kv_head = head / (HEADS / KV_HEADS);
const size_t table = size_t(sequence) * tables_shape[1];
const int first_tile = first / kLanes;
float largest = -INFINITY;
float total = 0;
float sums[kPerLane] = {0};
// The first tile of this group's that is not before the window.
int tile = first_tile + (group - first_tile % NUM_GROUPS + NUM_GROUPS) % NUM_GROUPS;
for (; tile * kLanes <= position; tile += NUM_GROUPS) {
  const int key = tile * kLanes + lane;
  const bool is_seen = key >= first && key <= position;
  float score = -INFINITY;
  int slot = 0;
  if (is_seen) {
    slot = tables[table + key / BLOCK_SIZE] * BLOCK_SIZE + key % BLOCK_SIZE;
    const size_t entry = (size_t(slot) * KV_HEADS + kv_head) * HEAD_DIM;
    float dot = 0;
    for (int d = 0; d < HEAD_DIM; ++d) dot = metal::fma(query[d], float(keys[entry + d]), dot);
    score = dot * settings[0];
    if (HAS_SOFT_CAP) score = settings[1] * metal::tanh(score / settings[1]);
  }
  const float new_largest = metal::max(largest, metal::simd_max(score));
  const float weight = is_seen ? metal::exp(score - new_largest) : 0.0f;
  const float kept = metal::exp(largest - new_largest);
  total = metal::fma(total, kept, metal::simd_sum(weight));
  for (int i = 0; i < kPerLane; ++i) sums[i] *= kept;
  tile_weights[thread_id] = weight;
  tile_slots[thread_id] = slot;
  metal::simdgroup_barrier(metal::mem_flags::mem_threadgroup);
  const int seen_begin = metal::max(first - tile * kLanes, 0);
  const int seen_end = metal::min(position + 1 - tile * kLanes, kLanes);
  for (int j = seen_begin; j < seen_end; ++j) {
    const int other = group * kLanes + j;
    const size_t entry = (size_t(tile_slots[other]) * KV_HEADS + kv_head) * HEAD_DIM;
    for (int i = 0; i < kPerLane; ++i) {
      const int d = lane + i * kLanes;
      if (d < HEAD_DIM)
        sums[i] = metal::fma(tile_weights[other], float(values[entry + d]), sums[i]);
    }
  }
  metal::simdgroup_barrier(metal::mem_flags::mem_threadgroup);
  largest = new_largest;
}

if (lane == 0) {
  group_largest[group] = largest;
  group_total[group] = total;
}
for (int i = 0; i < kPerLane; ++i) {
  const int d = lane + i * kLanes;
  if (d < HEAD_DIM) group_sums[group * HEAD_DIM + d] = sums[i];
}
metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
float largest_of_all = HAS_SINKS ? float(sinks[head]) : -INFINITY;
for (int g = 0; g < NUM_GROUPS; ++g) largest_of_all = metal::max(largest_of_all, group_largest[g]);
float denominator = HAS_SINKS ? metal::exp(float(sinks[head]) - largest_of_all) : 0.0f;
for (int g = 0; g < NUM_GROUPS; ++g) {
  denominator =
      metal::fma(group_total[g], metal::exp(group_largest[g] - largest_of_all), denominator);
}
for (int d = thread_id; d < HEAD_DIM; d += kNumThreads) {
  float sum = 0;
  for (int g = 0; g < NUM_GROUPS; ++g) {
    sum = metal::fma(group_sums[g * HEAD_DIM + d], metal::exp(group_largest[g] - largest_of_all),
                     sum);
  }
  out[row + d] = Out(sum / denominator);
}
