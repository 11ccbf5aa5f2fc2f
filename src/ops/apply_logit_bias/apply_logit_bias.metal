// apply_logit_bias: one threadgroup per slice of a row, rows along y.
//
// Several biases of one logit may be -inf, so such a bias only sets the logit's bit. Then one
// thread copies or bans each logit. Last, finite biases are added: at most one per logit.
#include "backend/gpu/kernel.metal.h"
#include "ops/apply_logit_bias/apply_logit_bias_metal.h"

// The logits of a row that one threadgroup processes.
struct LogitSlice {
  uint row;
  uint begin;
  uint size;
};

inline bool is_in(LogitSlice slice, uint row, uint token) {
  return row == slice.row && token >= slice.begin && token - slice.begin < slice.size;
}

// logits, out: [rows, vocab]; rows, token_ids, biases: [entries]; shared: one bit per logit of a
// slice, whose length is a multiple of 32
template <typename T>
[[kernel]] void apply_logit_bias(device const T* logits [[buffer(0)]],
                                 device const int* rows [[buffer(1)]],
                                 device const int* token_ids [[buffer(2)]],
                                 device const float* biases [[buffer(3)]],
                                 device T* out [[buffer(4)]],
                                 constant ApplyLogitBiasParameters& p [[buffer(5)]],
                                 threadgroup float* shared [[threadgroup(0)]], PAGODA_THREAD) {
  const uint begin = group.x * p.slice;
  const LogitSlice slice = {group.y, begin, min(p.slice, p.vocab - begin)};
  const size_t of_slice = size_t(group.y) * p.vocab + begin;
  threadgroup atomic_uint* const banned = (threadgroup atomic_uint*)(shared);
  for (uint i = thread_id; i < p.slice / 32; i += p.num_threads)
    atomic_store_explicit(banned + i, 0u, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint i = thread_id; i < p.num_entries; i += p.num_threads) {
    if (biases[i] > -INFINITY || !is_in(slice, uint(rows[i]), uint(token_ids[i]))) continue;
    const uint place = uint(token_ids[i]) - begin;
    atomic_fetch_or_explicit(banned + place / 32, 1u << (place % 32), memory_order_relaxed);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint place = thread_id; place < slice.size; place += p.num_threads) {
    const uint bits = atomic_load_explicit(banned + place / 32, memory_order_relaxed);
    const bool is_banned = ((bits >> (place % 32)) & 1) != 0;
    const T logit = logits[of_slice + place];
    out[of_slice + place] = is_banned ? T(float(logit) - INFINITY) : logit;
  }
  threadgroup_barrier(mem_flags::mem_device);
  for (uint i = thread_id; i < p.num_entries; i += p.num_threads) {
    if (!(biases[i] > -INFINITY) || !is_in(slice, uint(rows[i]), uint(token_ids[i]))) continue;
    const size_t at = of_slice + (uint(token_ids[i]) - begin);
    const float sum = float(out[at]) + biases[i];
    out[at] = T(sum);
  }
}
