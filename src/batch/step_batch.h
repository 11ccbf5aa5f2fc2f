// StepBatch: one engine step as flat arrays. All that a step needs is here; there is no hidden
// context.
//
// Sequences that decode come first, then prefill chunks. Kernels read the device tensors. Host
// fields and host arrays choose launches. Lazy backends need shapes while they build the graph, so
// they read the host arrays. (The ragged layout is the usual one: `query_start` is FlashAttention's
// cu_seqlens_q, block tables are vLLM's.)
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/exec.h"
#include "tensor/tensor.h"

namespace pagoda {

// A copy of a block's first entries to another block, made before the step's layers run.
struct BlockCopy {
  std::int32_t source = 0;       // block id
  std::int32_t destination = 0;  // block id
  std::int32_t num_tokens = 0;
};

// The host's side, filled by the engine's StepInput (or a test); `upload` makes the rest.
struct HostBatch {
  std::vector<std::int32_t> token_ids;     // [tokens]
  std::vector<std::int32_t> token_source;  // [tokens], or empty. -1: the id is in token_ids. Else
                                           // the previous step draws it on the device, in this
                                           // row of its draws
  std::vector<std::int32_t> positions;     // [tokens]; positions within the sequence, from 0
  std::vector<std::int32_t>
      query_start;  // [seqs + 1]; the first token of each sequence's part; the last is num_tokens
  std::vector<std::int32_t> context_lens;  // [seqs]; tokens of the sequence including this step's
  std::vector<std::int32_t> logits_rows;   // [rows]; tokens whose logits are wanted, ascending
  std::vector<std::int32_t> slot_mapping;  // [tables, tokens]; block * block_size + offset of the
                                           // token's entry; -1 writes nothing
  std::vector<std::int32_t> first_slots;   // [tables, seqs]: the slot of position 0 if the
                                           // sequence's blocks are consecutive, so that position p
                                           // has slot first_slots + p; else -1. Empty: unknown
  std::vector<std::int32_t> block_tables;  // [tables, seqs or more, max_blocks]; undefined past a
                                           // sequence's blocks, and before its sliding window
  std::vector<BlockCopy> block_copies;     // [copies]
  int max_blocks = 0;
  int num_tables = 1;   // block tables: cache groups have tables of their own (kv/kv_layout.h)
  int num_decodes = 0;  // number of sequences that decode: they come first, with one token each

  int num_tokens() const { return static_cast<int>(token_ids.size()); }
  int num_seqs() const { return static_cast<int>(context_lens.size()); }
  void clear();       // keeps the allocated memory
  void clear_step();  // clears all except the block tables
};

struct StepBatch {
  const HostBatch* host = nullptr;  // outlives the step
  int num_tokens = 0;
  int num_seqs = 0;
  int num_decodes = 0;
  int num_rows = 0;         // rows of logits_rows
  int max_query_len = 0;    // the most tokens that a sequence has in this step
  int max_context_len = 0;  // tokens

  Tensor token_ids;     // [tokens] int32
  Tensor token_source;  // [tokens] int32; undefined if every id is known
  Tensor positions;     // [tokens] int32
  Tensor query_start;   // [seqs + 1] int32
  Tensor context_lens;  // [seqs] int32
  Tensor logits_rows;   // [rows] int32; undefined if there are none
  Tensor slot_mapping;  // [tokens] int32
  Tensor first_slots;   // [seqs] int32; undefined if unknown
  Tensor block_tables;  // [seqs or more, max_blocks] int32
  Tensor block_copies;  // [copies, 3] int32: source, destination, tokens; undefined without copies

  // The same step with each block table, if there are several; else null. Must outlive this object.
  const StepBatch* by_table = nullptr;
  // Returns the step as the layers of a table see it.
  const StepBatch& of_table(int table) const {
    return by_table == nullptr ? *this : by_table[table];
  }
};

// Uploads a step's host arrays, all in one packet. `block_tables` is defined if the host's block
// tables are on the device already.
StepBatch upload(Exec& exec, const HostBatch& host, Tensor block_tables = {});
// Splits an uploaded step with several block tables, [tables, ...], into one step per table. Reuses
// by_table's memory.
void split_tables(const StepBatch& all, std::vector<StepBatch>& by_table);

}  // namespace pagoda
