// attention: causal attention of ragged queries over the paged cache; prefill chunks and decodes in
// one call.
//
// Block tables as in PagedAttention (Kwon et al., 2023, arXiv:2309.06180); the running maximum and
// sum over tiles are those of FlashAttention (Dao et al., 2022, arXiv:2205.14135); soft cap as in
// Gemma 2, sinks as in gpt-oss.
#pragma once

#include <cstdint>
#include <string_view>

#include "batch/kv_view.h"
#include "batch/step_batch.h"
#include "ops/dispatch.h"

namespace pagoda {

struct AttentionArgs {
  float scale = 1.0f;
  int window = 0;      // 0: none; else a query at position p sees positions p - window + 1 to p
  float soft_cap = 0;  // 0: none; else scores become cap * tanh(score / cap)
  Tensor
      sinks;  // [heads] float32, or undefined: one more logit a head in the softmax's denominator
};

// Computes out[t, h, :] = softmax(scale * q[t, h] . K[0..pos(t)] within the window, soft-capped,
// plus the head's sink) . V
//   q    [tokens, heads, head_dim]; the last extent contiguous
//   out  [tokens, heads * head_dim], q's dtype
// heads is a multiple of num_kv_heads; head h reads kv head h / (heads / num_kv_heads).
// Keys and values are always read from the cache, also those of the query's own chunk. Masking
// selects: it never multiplies or adds. Wholly masked tiles are skipped, and the denominator has no
// epsilon. So slots that no sequence owns change no bit, even if they hold NaN. A query's keys are
// read in tiles at fixed absolute positions and merged in order. So the result does not depend on
// the chunks, the batch, the block ids or the thread count, bit for bit. A token whose slot_mapping
// is -1 is padding: its output is undefined. If keys and values are bfloat16, a backend may round
// queries and weights to bfloat16 too.
Tensor attention(Exec& exec, const Tensor& q, const KvView& view, const StepBatch& batch,
                 const AttentionArgs& args);

// How a backend multiplies the entries of a cache. A row's bits depend on the path. So the path is
// a function of the cache's formats and the head size, and is the same on all instruction sets.
enum class AttentionPath : std::uint8_t {
  kFloats,   // floats, multiplied as floats
  kCodes,    // codes, multiplied as integers
  kAsRead,   // codes, each decoded as it is multiplied
  kDecoded,  // the fallback: a tile is decoded to float32, and then multiplied
};

// Returns "floats", "codes", "as read", "decoded".
std::string_view attention_path_name(AttentionPath path);

// Returns the path of a cache on a backend; that of cpu on mlx without a GPU. REQUIRES: the backend is built. Thread-safe.
AttentionPath attention_path(Backend backend, const KvFormats& formats, std::int64_t head_dim);

PAGODA_DECLARE_BODIES(AttentionPath attention_path(const KvFormats& formats, std::int64_t head_dim))
PAGODA_DECLARE_BODIES(Tensor attention(Exec& exec, const Tensor& q, const KvView& view,
                                       const StepBatch& batch, const AttentionArgs& args))

}  // namespace pagoda
