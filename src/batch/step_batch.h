// StepBatch: one engine step as flat arrays. All that a step needs is here; there is no hidden
// context.
//
// Sequences that decode come first, then prefill chunks. Kernels read the device tensors; host
// fields and host arrays choose launches, and lazy backends, whose shapes must be known while the
// graph is built, read the host arrays. (The ragged layout is the field's: `query_start` is
// FlashAttention's cu_seqlens_q, block tables are vLLM's.)
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/exec.h"
#include "tensor/tensor.h"

namespace pagoda {

// The first entries of a block, to be copied into another one before the step's layers.
struct BlockCopy {
  std::int32_t source = 0;       // block id
  std::int32_t destination = 0;  // block id
  std::int32_t num_tokens = 0;
};

// The host's side, filled by the engine's StepInput (or a test); `upload` makes the rest.
struct HostBatch {
  std::vector<std::int32_t> token_ids;     // [tokens]
  std::vector<std::int32_t> token_source;  // [tokens], or empty: none. -1: the id above, else the
                                           // row of the step before that has drawn it, on the
                                           // device
  std::vector<std::int32_t> positions;     // [tokens]; positions within the sequence, from 0
  std::vector<std::int32_t>
      query_start;  // [seqs + 1]; the first token of each sequence's part; the last is num_tokens
  std::vector<std::int32_t> context_lens;  // [seqs]; tokens of the sequence including this step's
  std::vector<std::int32_t> logits_rows;   // [rows]; tokens whose logits are wanted, ascending
  std::vector<std::int32_t> slot_mapping;  // [tables, tokens]; block * block_size + offset of the
                                           // token's entry; -1 writes nothing
  std::vector<std::int32_t> first_slots;   // [tables, seqs]: the slot of position 0 where the
                                           // sequence's blocks are consecutive, so that position p
                                           // lies in first_slots + p; else -1. Empty: unknown
  std::vector<std::int32_t> block_tables;  // [tables, seqs or more, max_blocks]; what lies past a
                                           // sequence's blocks, or behind a window, is undefined
  std::vector<BlockCopy> block_copies;     // [copies]
  int max_blocks = 0;
  int num_tables = 1;   // layers of several cache groups have as many (kv/kv_layout.h)
  int num_decodes = 0;  // the first sequences, one token each

  int num_tokens() const { return static_cast<int>(token_ids.size()); }
  int num_seqs() const { return static_cast<int>(context_lens.size()); }
  void clear();       // keeps the memory
  void clear_step();  // all but the block tables
};

struct StepBatch {
  const HostBatch* host = nullptr;  // outlives the step
  int num_tokens = 0;
  int num_seqs = 0;
  int num_decodes = 0;
  int num_rows = 0;         // of logits_rows
  int max_query_len = 0;    // tokens of the longest part
  int max_context_len = 0;  // tokens

  Tensor token_ids;     // [tokens] int32
  Tensor token_source;  // [tokens] int32; undefined where every id is known
  Tensor positions;     // [tokens] int32
  Tensor query_start;   // [seqs + 1] int32
  Tensor context_lens;  // [seqs] int32
  Tensor logits_rows;   // [rows] int32; undefined where there are none
  Tensor slot_mapping;  // [tokens] int32
  Tensor first_slots;   // [seqs] int32; undefined where unknown
  Tensor block_tables;  // [seqs or more, max_blocks] int32
  Tensor block_copies;  // [copies, 3] int32: source, destination, tokens; undefined without copies

  // The step with each table in turn, which outlive it; null: there is one, and it is here.
  const StepBatch* by_table = nullptr;
  // Returns the step as the layers of a table see it.
  const StepBatch& of_table(int table) const {
    return by_table == nullptr ? *this : by_table[table];
  }
};

// Uploads a step's host arrays, all in one packet. block_tables: the host's on the device, where it
// is there already.
StepBatch upload(Exec& exec, const HostBatch& host, Tensor block_tables = {});
// Splits an uploaded step of several tables, [tables, ...] each, into one a table; by_table keeps its
// memory.
void split_tables(const StepBatch& all, std::vector<StepBatch>& by_table);

}  // namespace pagoda
