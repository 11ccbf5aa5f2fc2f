// Parameters of attention.metal.
#ifndef PAGODA_ATTENTION_METAL_H
#define PAGODA_ATTENTION_METAL_H

// Parts of up to so many tokens are computed like decodes, with one token per threadgroup.
enum { kAttentionShortPart = 7 };
// Keys that one threadgroup of attention_decode reads; a multiple of a tile's keys.
enum { kAttentionPartition = 512 };
enum { kAttentionTile = 32 };
// Threads of a threadgroup of attention_decode, at most.
enum { kAttentionDecodeThreads = 512 };
// Threads of a threadgroup of attention_prompt.
enum { kAttentionPromptThreads = 256 };
// Threads of a threadgroup of attention_merge, at most; and partitions that it joins at once.
enum { kAttentionMergeThreads = 256 };
enum { kAttentionMergedAtOnce = 16 };

struct AttentionParameters {
  int heads;
  int kv_heads;
  int heads_of_kv;    // query heads of a kv head
  int heads_at_once;  // query heads that a threadgroup takes: all, unless very many
  int runs_of_heads;  // runs of heads_at_once heads per kv head
  int head_dim;
  int token_stride;  // between tokens of q, in elements
  int head_stride;
  int num_seqs;
  int num_decodes;  // the first sequences, which have one token each
  int max_blocks;   // entries of a sequence in block_tables
  int block_size;
  int has_first_slots;  // 0: first_slots is any buffer, and not read
  int has_sinks;        // 0: sinks is any buffer, and not read
  int window;           // 0: none
  int num_partitions;   // attention_decode: the most partitions of a query
  int simd_groups;      // attention_decode: SIMD groups of a threadgroup; changes no bit
  int tokens_at_once;   // attention_prompt: tokens of a threadgroup
  int first_group;      // attention_prompt: threadgroups of earlier dispatches
  int value_width;      // width of the rotation of values; 1: none
  float scale;          // divided by the width of the rotation of keys
  float soft_cap;       // 0: none
};

#endif  // PAGODA_ATTENTION_METAL_H
