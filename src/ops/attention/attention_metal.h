// Parameters of attention.metal.
#ifndef PAGODA_ATTENTION_METAL_H
#define PAGODA_ATTENTION_METAL_H

// Parts of a step of up to so many tokens are attended a token a threadgroup, as decodes are.
enum { kAttentionShortPart = 7 };
// Keys that one threadgroup of attention_decode reads; a multiple of a tile's.
enum { kAttentionPartition = 512 };
enum { kAttentionTile = 32 };
// Threads of a threadgroup of attention_decode, at most.
enum { kAttentionDecodeThreads = 512 };
// Threads of a threadgroup of attention_prompt, and the rows (queries of a head) that share keys.
enum { kAttentionPromptThreads = 256 };
// Threads of a threadgroup of attention_merge, at most; and partitions that it joins at once.
enum { kAttentionMergeThreads = 256 };
enum { kAttentionMergedAtOnce = 16 };

struct AttentionParameters {
  int heads;
  int kv_heads;
  int heads_of_kv;    // query heads of a kv head
  int heads_at_once;  // of which a threadgroup takes so many: all but very many
  int runs_of_heads;  // and of which there are so many runs
  int head_dim;
  int token_stride;  // of q, in elements
  int head_stride;
  int num_seqs;
  int num_decodes;  // the first sequences, a token each
  int max_blocks;   // of a sequence, in block_tables
  int block_size;
  int has_first_slots;  // whether first_slots is that, else any buffer
  int has_sinks;        // whether sinks is that, else any buffer
  int window;           // 0: none
  int num_partitions;   // attention_decode: of a query, at most
  int simd_groups;      // attention_decode: of a threadgroup; changes no bit
  int tokens_at_once;   // attention_prompt: of a threadgroup
  int first_group;      // attention_prompt: threadgroups of earlier dispatches
  int value_width;      // of the rotation of values; 1: none
  float scale;          // over the width of the rotation of keys
  float soft_cap;       // 0: none
};

#endif  // PAGODA_ATTENTION_METAL_H
