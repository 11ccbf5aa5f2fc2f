"""Mistakes to be made in kernels, one at a time, each of which a check has to see (test_mutations.py).

A mistake is a text that stands once in a folder's kernels, whatever the spaces and #pragmas between its words, and what
comes in its place.
"""

import enum
from typing import NamedTuple


class Check(enum.Enum):
    """What sees a mistake: a pattern of the line that op_cases_driver.cc prints."""

    RACE = r"that .* has (?:read|written) with (?:no barrier|nothing) between"
    RACE_OF_GROUPS = r"that another threadgroup has (?:read|written) in this dispatch"
    UNWRITTEN = r"that nobody has written"
    OUTSIDE = r"outside of what is bound"
    VALUES = r"is off by \S+ of the largest value"
    BITS = r"has other bits in a batch of"


class Mutation(NamedTuple):
    what: str  # is taken away, or is wrong
    op: str  # whose cases are run
    folder: str  # of src/ops, that the text stands in
    before: str
    after: str
    seen_by: tuple[Check, ...]  # any of them
    cases: tuple[str, ...]  # texts of their descriptions
    kernels: tuple[str, ...] = ()  # that are compiled, as they are registered; empty: all of the op
    units: str = "chain"  # how matrix units add up, as op_cases_driver.cc has it


BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup);"
SIMD_BARRIER = "simdgroup_barrier(mem_flags::mem_threadgroup);"
ANY_RACE = (Check.RACE, Check.RACE_OF_GROUPS)

NORMS = (
    Mutation("the barrier of a row's sum", "rms_norm", "rms_norm",
             f"{BARRIER} const int first", "const int first", (Check.RACE, Check.UNWRITTEN), ("3 x 0 x 577",)),
    Mutation("the bound of the rows", "rms_norm", "rms_norm",
             "row < p.num_rows ? p.dim : 0", "p.dim", (Check.OUTSIDE,), ("5 x 0 x 64", "4 x 3 x 24")),
    Mutation("a mean by another arithmetic among other rows", "rms_norm", "rms_norm",
             "inverse_rms(sum, p.dim, p.eps)",
             "inverse_rms(p.num_rows > 1 ? sum * (1.0f / float(p.dim)) : sum / float(p.dim), 1, p.eps)",
             (Check.BITS,), ("9 x 0 x 320", "3 x 0 x 577", "2 x 0 x 2305")),
    Mutation("the barrier of a row's sum", "add_rms_norm", "rms_norm",
             f"{BARRIER} const int first", "const int first", (Check.RACE, Check.UNWRITTEN), ("7 x 577",)),
    Mutation("what is added to the end of a long row", "add_rms_norm", "add_rms_norm",
             "load_run<kWide>(sum + begin + i, true, more);", "load_run<kWide>(x + begin + i, p.is_aligned != 0, more);",
             (Check.VALUES,), ("2 x 9000",)),
    Mutation("the factor of a sum", "add_rms_norm", "add_rms_norm",
             "other[i] * p.delta_factor) * p.sum_factor", "other[i] * p.delta_factor)",
             (Check.VALUES,), ("3 x 2305, of a norm, times",)),
    Mutation("the place of the second norm's sums", "add_rms_norm", "add_rms_norm",
             "shared + simd_groups * p.rows_per_group", "shared", ANY_RACE, ("3 x 2305, of a norm, times",)),
    Mutation("the weights of what is added", "add_rms_norm", "add_rms_norm",
             "other[i] * inverse * gains[i]", "other[i] * inverse", (Check.VALUES,), ("7 x 577, of a norm",)),
    Mutation("the rows of what a gate goes with", "glu", "glu",
             "up + row * p.up_stride", "up + row * p.gate_stride", (Check.VALUES, Check.OUTSIDE), ("3 x 37",)),
)

CACHES = (
    Mutation("the padding, whose slot is -1", "rope_kv_write", "rope_kv_write",
             "slot >= 0 && slot < p.num_slots", "slot < p.num_slots", (Check.OUTSIDE,), ("5 x (2 + 2 x 1) x 16",),
             ("rope_kv_write, float, float, 16", "rope_kv_write, bfloat, bfloat, 16", "rope_kv_write, half, half, 16")),
    Mutation("the bound of the heads", "rope_kv_write", "rope_kv_write",
             "number < p.num_heads + 2 * p.num_kv_heads && (head.is_query || is_stored);",
             "head.is_query || is_stored;",
             (Check.OUTSIDE, *ANY_RACE), ("5 x (2 + 2 x 1) x 16 into float32",),
             ("rope_kv_write, float, float, 16",)),
    Mutation("the rotated pairs of a head that is rotated in part", "rope_kv_write", "rope",
             "if (pair < pairs.num_rotated) {", "if (pair < kHeadDim / 2) {",
             (Check.OUTSIDE, Check.VALUES, *ANY_RACE), ("7 x (4 + 2 x 2) x 16 into float32",),
             ("rope_kv_write, float, float, 16",)),
    Mutation("the bound of the pairs", "rope_kv_write", "rope",
             "if (pair < kHeadDim / 2) { if (pairs.is_halves) {", "{ if (pairs.is_halves) {",
             (Check.OUTSIDE, *ANY_RACE), ("4 x (3 + 2 x 3) x 18 into float32",), ("rope_kv_write, float, float, 18",)),
    Mutation("the norm of values", "rope_kv_write", "rope_kv_write",
             "p.norms_values != 0", "p.norms_values < 0", (Check.VALUES,), ("x 16 into float32, halves, normed, values",),
             ("rope_kv_write, float, float, 16",)),
    Mutation("the place of values that are keys", "rope_kv_write", "rope_kv_write",
             "head.is_value ? p.first_value + head.place.kv_head : head.number", "head.number",
             (Check.VALUES, Check.OUTSIDE), ("x 16 into float32, halves, normed, values normed, keys",),
             ("rope_kv_write, float, float, 16",)),
    Mutation("the padding, whose slot is -1", "kv_write", "kv_write",
             "i >= entry_width || slot < 0 ||", "i >= entry_width ||", (Check.OUTSIDE,), ("float32, padding",)),
    Mutation("the bound of an entry", "kv_write", "kv_write",
             "if (i >= entry_width || slot < 0", "if (slot < 0",
             (Check.OUTSIDE, Check.RACE_OF_GROUPS), ("9 x 3 x 64",)),
    Mutation("the end of what is copied", "kv_copy_blocks", "kv_copy_blocks",
             "if (word >= p.block_words || word % p.run_words >= copy[2] * p.token_words) return;",
             "if (word >= p.block_words) return;", (Check.VALUES,), ("5 blocks of 16", "20 blocks")),
    Mutation("the runs of scales", "kv_copy_blocks", "kv_copy_blocks",
             "word % p.run_words >= copy[2]", "word >= copy[2]", (Check.VALUES,), ("5 blocks of 16 x 3 x 64 int8",)),
    Mutation("the sign of a rotation's upper half", "kv_write", "kv_write",
             "is_upper ? other - x[i] : x[i] + other", "is_upper ? x[i] - other : x[i] + other",
             (Check.VALUES,), ("9 x 3 x 64 into 5 x 16 int8",), ("kv_write_codes, char, char, 64",)),
    Mutation("a scale that is rounded up", "kv_write", "kv_write",
             "(1.0f / 127.0f)) + 0xffffu) >> 16", "(1.0f / 127.0f)) + 0x7fffu) >> 16",
             (Check.VALUES,), ("9 x 3 x 64 into 5 x 16 int8",), ("kv_write_codes, char, char, 64",)),
    Mutation("the lane of a high code", "kv_write", "kv_write",
             "const int from = (lane + kHighLane) % 32;", "const int from = lane;",
             (Check.VALUES,), ("10 x 2 x 24 into 7 x 8 int4",), ("kv_write_codes, uchar, uchar, 24",)),
    Mutation("the barrier behind a head's exchange", "rope_kv_write", "rope_kv_write",
             f"{SIMD_BARRIER} }}", "}", (Check.RACE, Check.UNWRITTEN), ("9 x (9 + 2 x 3) x 64 into int8,",),
             ("rope_kv_write_codes, char, char, 64",)),
)

Q8_0 = ("linear_few, Q8_0, 8, 32, half, 1", "linear_few, Q8_0, 8, 32, half, 4", "linear_many, Q8_0, 8, 32, half, 0",
        "linear_many, Q8_0, 8, 32, half, 1")
AFFINE = ("linear_few, Affine, 4, 64, bfloat, 1", "linear_few, Affine, 4, 64, bfloat, 4",
          "linear_many, Affine, 4, 64, bfloat, 0", "linear_many, Affine, 4, 64, bfloat, 1")
GATED = ("gated_linear_few, Q4_1, 4, 32, half, 1", "gated_linear_few, Q4_1, 4, 32, half, 4",
         "gated_linear_many, Q4_1, 4, 32, half, 0", "gated_linear_many, Q4_1, 4, 32, half, 1")

PRODUCTS = (
    Mutation("the barrier behind x of few rows", "linear", "linear",
             f"stage_few<P, kRows>(loaded, lane, staged, sums); {SIMD_BARRIER}",
             "stage_few<P, kRows>(loaded, lane, staged, sums);",
             (Check.RACE, Check.UNWRITTEN), ("3 x 288 -> 80 Q8_0",), Q8_0),
    Mutation("the barrier ahead of x of few rows", "linear", "linear",
             f"{SIMD_BARRIER} stage_few", "stage_few", (Check.RACE,), ("2 x 256 -> 48 Q6_K",),
             ("linear_few, Q6_K, 6, 16, half, 1", "linear_few, Q6_K, 6, 16, half, 4")),
    Mutation("the barrier ahead of totals, which lie where x was", "linear", "linear",
             f"{BARRIER} for (int i = 0; i < kPanels * kRows; ++i) {{ shared[16",
             "for (int i = 0; i < kPanels * kRows; ++i) { shared[16",
             (Check.RACE,), ("3 x 288 -> 80 Q8_0",), Q8_0),
    Mutation("the bound of the columns", "linear", "linear",
             "if (column < p.cols) {", "{", (Check.OUTSIDE, *ANY_RACE), ("1 x 64 -> 37 Q8_0",), Q8_0),
    Mutation("chunks in another order where a row is alone", "linear", "linear",
             "for (uint chunk = 0; chunk < num_chunks; ++chunk) { sum +=",
             "for (uint c = 0; c < num_chunks; ++c) { const uint chunk = kRows == 1 ? num_chunks - 1 - c : c; sum +=",
             (Check.BITS,), ("3 x 288 -> 80 Q8_0",), Q8_0),
    Mutation("the padding of the rows", "linear", "linear",
             "if (row < rows.count) {", "{", (Check.OUTSIDE,), ("5 x 96 -> 48 Q8_0",), Q8_0),
    Mutation("the barrier ahead of a block's product by lanes", "linear", "linear",
             f"{BARRIER} if (k + 32 < p.width) load_next", "if (k + 32 < p.width) load_next",
             (Check.RACE, Check.UNWRITTEN), ("5 x 96 -> 48 Q8_0",), Q8_0, "by_place"),
    Mutation("the barrier behind a block's product by lanes", "linear", "linear",
             f"totals[i] = 0; }} }} {BARRIER}", "totals[i] = 0; } }",
             (Check.RACE,), ("5 x 96 -> 48 Q8_0",), Q8_0, "by_place"),
    Mutation("the barrier behind a block's product by matrix units", "linear", "linear",
             f"totals[i] = 0; }} }} {BARRIER}", "totals[i] = 0; } }", (Check.RACE,), ("5 x 96 -> 48 Q8_0",), Q8_0),
    Mutation("the barrier behind parts by matrix units", "linear", "linear",
             f"make_filled_simdgroup_matrix<float, 8, 8>(0.0f); }} {SIMD_BARRIER}",
             "make_filled_simdgroup_matrix<float, 8, 8>(0.0f); }",
             (Check.RACE, Check.UNWRITTEN), ("13 x 64 -> 37 Q8_0",), Q8_0),
    Mutation("the end of a chunk, of many rows", "linear", "linear",
             "if ((k + 32) % p.chunk == 0 || k + 32 >= p.width) {", "if (k + 32 >= p.width) {",
             (Check.BITS,), ("5 x 256 -> 48 affine 4-bit, groups of 64, BF16",), AFFINE),
    Mutation("the bound of the rows and columns of a tile", "linear", "linear",
             "if (row < num_rows && column < p.cols) {", "if (row < num_rows) {",
             (Check.OUTSIDE, *ANY_RACE), ("5 x 64 -> 37 Q8_0",), Q8_0),
    Mutation("the barrier between a gate's product and its other part's", "gated_linear", "gated_linear",
             f"{BARRIER} const uint column = 32 * panel + lane;", "const uint column = 32 * panel + lane;",
             (Check.RACE, Check.UNWRITTEN), ("13 x 96 -> 80, Q4_1 and Q4_1",), GATED),
    Mutation("the bound of a row's values", "gather_rows", "gather_rows",
             "if (row < p.rows && k < p.width) {", "if (row < p.rows) {",
             (Check.OUTSIDE, Check.UNWRITTEN, *ANY_RACE), ("5 of 40 x 64 Q8_0",), ("gather_rows, Q8_0, 8, 32, half",)),
)

DIM_16 = ("attention_merge", "attention_decode, bfloat, bfloat, 16", "attention_prompt, bfloat, bfloat, 16")
DIM_64 = ("attention_merge", "attention_decode, bfloat, bfloat, 64", "attention_prompt, bfloat, bfloat, 64")
DIM_80 = ("attention_merge", "attention_decode, bfloat, bfloat, 80", "attention_prompt, bfloat, bfloat, 80")
CODES = ("attention_merge", "attention_decode, char, uchar, 64", "attention_prompt, char, uchar, 64")
MIXED = "1/33 1/100 1/1 40/40 11/75, 6 heads on 2, dim 64, blocks of 16 int8 and int4"
RAGGED = "1/33 1/100 1/1 40/40 11/75, 2 heads on 1, dim 16"

ATTENTIONS = (
    Mutation("the barrier behind the queries", "attention", "attention",
             f"{BARRIER} for (int round = begin", "for (int round = begin", (Check.RACE, Check.UNWRITTEN),
             (f"{RAGGED}, blocks of 16 bfloat16, sinks",), DIM_16),
    Mutation("the barrier behind the factors of tiles", "attention", "attention",
             f"tile_factors); {BARRIER}", "tile_factors);", (Check.RACE, Check.UNWRITTEN),
             (f"{RAGGED}, blocks of 16 bfloat16, sinks",), DIM_16),
    Mutation("the barrier behind a round of tiles", "attention", "attention",
             f"{BARRIER} }} const size_t record", "} const size_t record", (Check.RACE,),
             (f"{RAGGED}, blocks of 16 bfloat16, sinks",), DIM_16),
    Mutation("the barrier behind a tile's weights", "attention", "attention",
             f"p.soft_cap, states + h * 2); }} {SIMD_BARRIER}", "p.soft_cap, states + h * 2); }",
             (Check.RACE, Check.UNWRITTEN), (f"{RAGGED}, blocks of 16 bfloat16, sinks",), DIM_16),
    Mutation("the window of a decode", "attention", "attention",
             "const int begin = max(query.first, partition * kAttentionPartition);",
             "const int begin = partition * kAttentionPartition;", (Check.VALUES,), (f"{RAGGED}, blocks of 8",),
             DIM_16),
    Mutation("the last key of a decode", "attention", "attention",
             "const int end = min(query.position + 1, (partition + 1) * kAttentionPartition);",
             "const int end = min(query.position + 2, (partition + 1) * kAttentionPartition);",
             (Check.VALUES, Check.OUTSIDE), ("1/45 1/3 9/70, 6 heads on 2, dim 24, blocks of 16 bfloat16",),
             ("attention_decode, bfloat, bfloat, 24", "attention_prompt, bfloat, bfloat, 24")),
    Mutation("the causal mask of a prompt", "attention", "attention",
             "rows.position + place : -1", "rows.position + place + 1 : -1", (Check.VALUES,),
             (f"{RAGGED}, blocks of 16 bfloat16, sinks",), DIM_16),
    Mutation("the window of a prompt", "attention", "attention",
             "row[a].first = first_key(row[a].position, p.window);", "row[a].first = 0;",
             (Check.VALUES, Check.UNWRITTEN), (f"{RAGGED}, blocks of 8",), DIM_16),
    Mutation("the barrier behind a prompt's staged keys", "attention", "attention",
             f"{BARRIER} for (int k = 0; is_any_seen", "for (int k = 0; is_any_seen", (Check.RACE, Check.UNWRITTEN),
             (f"{RAGGED}, blocks of 16 bfloat16, sinks",), DIM_16),
    Mutation("the barrier ahead of a prompt's staged values", "attention", "attention",
             f"begin += Prompt::kSliceFoursPerThread) {{ {BARRIER}", "begin += Prompt::kSliceFoursPerThread) {",
             (Check.RACE,), (f"{RAGGED}, blocks of 16 bfloat16, sinks",), DIM_16),
    Mutation("the number of a query's partitions", "attention", "attention",
             "query.position / kAttentionPartition - query.first / kAttentionPartition + 1;",
             "p.num_partitions;", (Check.VALUES, Check.UNWRITTEN),
             ("1/530 3/60 17/40, 2 heads on 1, dim 80",), DIM_80),
    Mutation("the barrier behind the factors of partitions", "attention", "attention",
             f"num_threads, factors); {BARRIER}", "num_threads, factors);", (Check.RACE, Check.UNWRITTEN),
             ("1/530 3/60 17/40, 2 heads on 1, dim 80",), DIM_80),
    Mutation("the first partition, where two are joined", "attention", "attention",
             "for (int first = 0; first < num_partitions;",
             "for (int first = num_partitions - 1; first < num_partitions;",
             (Check.VALUES,), ("1/530 3/60 17/40, 2 heads on 1, dim 80",), DIM_80),
    Mutation("the order of halves among a piece's codes", "attention", "attention",
             "return low / 4 * 8 + (is_high ? 4 : 0) + low % 4;", "return d;", (Check.VALUES,),
             (MIXED,), CODES),
    Mutation("the scale of a key that nobody sees", "attention", "attention",
             "if (kNumScales > 0 && is_seen) {", "if (kNumScales > 0) {", (Check.VALUES, Check.UNWRITTEN, Check.OUTSIDE),
             (MIXED,), CODES),
    Mutation("the places of weights among values in pieces of another size", "attention", "attention",
             "tile + place_of_key<V, kDim>(lane)", "tile + place_of_key<K, kDim>(lane)", (Check.VALUES,),
             ("1/33 1/100 1/1 40/40 11/75, 6 heads on 2, dim 64, blocks of 16 float32 and int4",),
             ("attention_merge", "attention_decode, float, uchar, 64", "attention_prompt, float, uchar, 64")),
    Mutation("the barrier ahead of rows that are rotated back", "attention", "attention",
             f"if (kHasValueScales) {BARRIER}", "", (Check.RACE,),
             (MIXED,), CODES),
    Mutation("the width of the rotation, where partitions are joined", "attention", "attention",
             "rotate_shared(whole, p.head_dim, p.value_width,", "rotate_shared(whole, p.head_dim, p.value_width / 2,",
             (Check.BITS,), ("9/520 1/33, 3 heads on 1, dim 64, blocks of 32 int8",),
             ("attention_merge", "attention_decode, char, char, 64", "attention_prompt, char, char, 64")),
)

DRAWS = (
    Mutation("the barrier behind the largest of SIMD groups", "argmax", "sample",
             f"scratch[64 + place.simd_group] = floor; }} {BARRIER}", "scratch[64 + place.simd_group] = floor; }",
             (Check.RACE, Check.UNWRITTEN), ("9 x 7",)),
    Mutation("the lowest of equal logits", "argmax", "sample",
             "if (of_token > key) {", "if (of_token >= key) {", (Check.VALUES,), ("20 x 129",)),
    Mutation("the end of the vocabulary", "sample", "sample",
             "id < row.vocab ? as_type<uint>(float(row.logits[id])) : kBitsOfMinusInfinity",
             "as_type<uint>(float(row.logits[id]))", (Check.OUTSIDE, Check.VALUES), ("40 x 7",)),
    Mutation("the barrier ahead of sums of SIMD groups", "sample", "sample",
             f"threadgroup uint* scratch) {{ {BARRIER} if (place.lane == 0) {{ scratch[place.simd_group] = uint(x);",
             "threadgroup uint* scratch) { if (place.lane == 0) { scratch[place.simd_group] = uint(x);",
             (Check.RACE,), ("40 x 129", "64 x 129")),
    Mutation("the barrier behind a histogram", "log_probs", "sample",
             f"(kRowBuckets - 1), x); }} }} {BARRIER}", "(kRowBuckets - 1), x); } }",
             (Check.RACE, Check.VALUES), ("24 x 3000", "20 x 7"), ("log_probs, float",)),
    Mutation("the barrier behind a cleared histogram", "top_k_top_p_min_p", "sample",
             f"atomic_store_explicit(words + i, 0u, memory_order_relaxed); {BARRIER}",
             "atomic_store_explicit(words + i, 0u, memory_order_relaxed);",
             (Check.RACE, Check.UNWRITTEN, Check.VALUES), ("64 x 129",)),
    Mutation("a rank's own logit", "log_probs", "log_probs",
             "measure.least = key + 1;", "measure.least = key;", (Check.VALUES,), ("20 x 7",),
             ("log_probs, float",)),
    Mutation("the barrier behind what was collected", "log_probs", "log_probs",
             f"{BARRIER} return atomic_load_explicit", "return atomic_load_explicit",
             (Check.RACE, Check.UNWRITTEN), ("20 x 7",), ("log_probs, float",)),
    Mutation("entries that are none", "count_tokens", "count_tokens",
             "if (histogram < 0 || token_id < 0) return;", "", (Check.OUTSIDE, Check.RACE, Check.VALUES), ("30 of 4",)),
    Mutation("rows without counts", "apply_penalties", "apply_penalties",
             "histogram < 0 ? 0 : counts", "counts", (Check.OUTSIDE,), ("40 x 130",)),
    Mutation("the end of the vocabulary", "apply_token_mask", "apply_token_mask",
             "if (token >= p.vocab) return;", "", (Check.OUTSIDE, *ANY_RACE), ("20 x 130",)),
    Mutation("rows without a mask", "apply_token_mask", "apply_token_mask",
             "mask < 0 ||", "", (Check.OUTSIDE, Check.VALUES), ("20 x 130",)),
    Mutation("the barrier between logits copied and biased", "apply_logit_bias", "apply_logit_bias",
             "threadgroup_barrier(mem_flags::mem_device);", "", (Check.RACE, Check.UNWRITTEN), ("20 x 130",)),
)

EXPERTS = ("expert_linear_few, Q8_0, 8, 32, half, 1", "expert_linear_few, Q8_0, 8, 32, half, 4",
           "expert_linear_many, Q8_0, 8, 32, half, 0", "expert_linear_many, Q8_0, 8, 32, half, 1", "expert_linear_sum")
GATED_EXPERTS = tuple(kernel.replace("expert_linear", "expert_gated_linear") for kernel in EXPERTS[:4])

MIXTURES = (
    Mutation("the lowest of equal experts", "route", "route",
             "simd_min(value == best ? own.id : kNoCandidate)",
             "int(simd_max(value == best && own.id != kNoCandidate ? own.id : -1))",
             (Check.VALUES,), ("3 x 32 of 128",)),
    Mutation("the end of a token's experts", "route", "route",
             "if (id < p.num_experts) { logit =", "{ logit =", (Check.OUTSIDE,), ("20 x 3 of 37",)),
    Mutation("the groups that are not chosen", "route", "route",
             "if (p.num_chosen_groups < p.num_groups) drop_groups(experts, p, lane);", "", (Check.VALUES,),
             ("9 x 8 of 64",)),
    Mutation("the second best expert of a group", "route", "route",
             "experts.close(first.id, lane);", "", (Check.VALUES,), ("9 x 8 of 64",)),
    Mutation("the barrier behind the sums of SIMD groups", "group_by_expert", "group_by_expert",
             f"shared[simd_group] = before + value; {BARRIER}", "shared[simd_group] = before + value;",
             (Check.RACE, Check.UNWRITTEN), ("37 x 5 of 33",)),
    Mutation("the barrier ahead of the next sums of SIMD groups", "group_by_expert", "group_by_expert",
             f"sum += shared[i]; {BARRIER}", "sum += shared[i];", (Check.RACE,), ("37 x 5 of 33",)),
    Mutation("the blocks that are not used", "group_by_expert", "group_by_expert",
             "if (expert == p.num_experts - 1) {", "if (expert < 0) {", (Check.UNWRITTEN, Check.VALUES),
             ("37 x 5 of 33",)),
    Mutation("the rows of a full block", "group_by_expert", "group_by_expert",
             "min(count - i * p.block_rows, p.block_rows)", "count - i * p.block_rows", (Check.VALUES,), ("9 x 1 of 2",)),
    Mutation("the first row of a block", "expert_linear", "expert_linear",
             "p, FirstRows{block.num_rows}, 0,", "p, FirstRows{block.first_row + block.num_rows}, 0,",
             (Check.VALUES, Check.OUTSIDE, *ANY_RACE), ("13 x 3 of 4",), EXPERTS),
    Mutation("the end of a token's sum", "expert_linear", "expert_linear",
             "if (column >= p.hidden) return;", "", (Check.OUTSIDE, *ANY_RACE), ("13 x 3 of 4",), EXPERTS),
    Mutation("the weight of the shared expert", "expert_linear", "expert_linear",
             "precise::exp(-shared_gate[group.y])", "precise::exp(-shared_gate[0])", (Check.VALUES,), ("5 x 3 of 4",),
             EXPERTS),
    Mutation("the tokens of rows", "expert_gated_linear", "expert_linear",
             "return uint(tokens[row]);", "return row;", (Check.VALUES,), ("13 x 3 of 4",), GATED_EXPERTS),
    Mutation("the bias of an expert", "expert_gated_linear", "expert_gated_linear",
             "sums, shared, bias + size_t(block.expert) * 2 * p.cols * p.has_bias,", "sums, shared, bias,",
             (Check.VALUES,), ("13 x 3 of 4",), GATED_EXPERTS),
)

MUTATIONS = NORMS + CACHES + PRODUCTS + ATTENTIONS + DRAWS + MIXTURES
