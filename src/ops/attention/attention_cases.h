// Shapes of attention, for its case list and for its own tests.
#pragma once

#include <span>
#include <vector>

#include "core/kv_format.h"
#include "ops/attention/attention.h"
#include "ops/op_case.h"

namespace pagoda {

// A sequence whose last `query_len` tokens are computed in this step.
struct AttentionSeq {
  int context_len;
  int query_len;
};

struct AttentionShape {
  std::vector<AttentionSeq> seqs;
  int heads = 1;
  int kv_heads = 1;
  int head_dim = 16;
  int block_size = 16;
  KvFormats formats = {KvFormat::kBFloat16, KvFormat::kBFloat16};
  int window = 0;
  float soft_cap = 0;
  bool has_sinks = false;
  float magnitude = 1;            // magnitude of queries and keys
  bool equal_keys = false;        // every score of a query is the same
  bool ends_in_nan = false;       // each sequence's last key and value are NaN
  std::uint32_t layout_seed = 1;  // seed of the block ids; changes no result. 0: ids in order
  int layers = 1;                 // runs on separate KV caches, which the CPU has not cached
  bool is_large = false;
  decltype(&attention) attend = attention;  // the function that is run
};

struct AttentionInputs {
  std::vector<float> queries;  // [tokens, heads, head_dim]
  std::vector<float> keys;     // [context positions of all sequences, kv_heads, head_dim]
  std::vector<float> values;   // as keys
  std::vector<float> sinks;    // [heads], or empty
};
// Returns shapes that mix decodes, short parts and prompt chunks, with and without a window, a soft
// cap and sinks. Other projects test on this grid.
std::vector<AttentionShape> attention_grid();
// Returns the shapes of the case list.
std::vector<AttentionShape> attention_shapes();
AttentionInputs attention_inputs(const AttentionShape& shape);
float attention_scale(const AttentionShape& shape);
// Makes a case in which slots that no sequence owns hold NaN.
OpCase make_attention_case(const AttentionShape& shape);
// Returns the outputs of some tokens of a shape, [tokens, heads, head_dim]. REQUIRES: the backend
// can run the case.
std::vector<float> run_attention(Exec& exec, const AttentionShape& shape,
                                 std::span<const int> tokens);

}  // namespace pagoda
