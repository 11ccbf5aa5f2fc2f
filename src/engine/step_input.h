// StepInput: turns plans into StepBatches. Its arrays are kept from step to step.
//
//   plan ──set()──▶ HostBatch ──upload()──▶ StepBatch
//
// Arrays with an entry per token of the step are written anew. Block tables grow with the contexts
// and are kept: if a row has the same sequence as before, only its new blocks are appended. So a
// steady decode step writes O(sequences) words, however long the contexts are. A row is written
// whole if another sequence takes it, or if its table did more than grow (BlockTable::epoch).
//
// On native backends the device's table is kept and extended in the same way. On other backends a
// step in flight may still read the last table, so a changed table is uploaded anew.
//
// Layers of different cache groups have different tables. Blocks that have been given back behind a
// window stay in their row, and no kernel reads them.
//
// Belongs to the engine thread.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "batch/step_batch.h"
#include "engine/scheduler.h"
#include "kv/kv_layout.h"
#include "tensor/exec.h"

namespace pagoda {

// A token of the step whose logits score the next token of its prompt.
struct ScoredToken {
  int sequence = 0;  // its index in the plan
  int token_id = 0;  // the token that is scored
};

// Counters for /metrics; they only grow.
struct StepInputCounters {
  std::uint64_t num_words = 0;  // words of 4 bytes, written to host arrays
  // Steps in which every sequence has consecutive blocks, so that attention reads memory in order,
  // and all other steps.
  std::uint64_t num_contiguous_steps = 0;
  std::uint64_t num_paged_steps = 0;
};

class StepInput {
 public:
  explicit StepInput(int block_size, std::vector<KvTable> tables = {{}});

  // Fills the host's arrays for a step; valid until the next call.
  const HostBatch& set(const Plan& plan);
  // Uploads those arrays to the device. REQUIRES: the host's arrays outlive the use of the batch,
  // and `exec` outlives this object's last upload.
  StepBatch upload(Exec& exec);
  // Returns the block copies of an uploaded step for layers whose blocks have `num_parts` parts.
  StepBatch copies_of(const StepBatch& batch, int num_parts) const;

  // Forgets which sequence each row of the tables has. A new scheduler counts arrivals from zero
  // again, so an equal arrival need not be the same sequence.
  void forget_rows() { table_rows_.assign(table_rows_.size(), {}); }

  const HostBatch& host() const { return host_; }
  // Returns the scored rows as indices of the step's tokens.
  std::span<const std::int32_t> scored_rows() const { return scored_rows_; }
  // Returns the scored tokens, one per scored row.
  std::span<const ScoredToken> scored_tokens() const { return scored_tokens_; }
  const StepInputCounters& counters() const { return counters_; }

 private:
  // The contents of a row of the table.
  struct TableRow {
    std::uint64_t arrival = 0;  // identifies the sequence
    std::uint64_t epoch = 0;
    int num_blocks = 0;  // 0: the row is empty
    // Blocks from run_begin on are consecutive. run_slot: the slot of position 0 if all blocks were
    // so.
    int run_begin = 0;
    int run_slot = 0;
  };
  // Words of the host's table that the device's lacks.
  struct TablePart {
    std::size_t begin = 0;
    std::size_t end = 0;
  };

  void make_room(const Plan& plan);
  void add_sequence(int index, const PlannedSequence& planned);
  void add_tokens(int index, const PlannedSequence& planned);
  int num_tables() const { return static_cast<int>(tables_.size()); }
  std::size_t row_of(int table, int index) const { return table * num_rows_ + index; }
  void extend_row(int table, int index, const Sequence& sequence);
  int first_slot(int table, int index, const Sequence& sequence) const;
  void count();
  void update_device_table(Exec& exec);

  int block_size_;
  std::vector<KvTable> tables_;
  // The step's block copies for each number of parts; host_ has all of them, one after another.
  std::map<int, HostBatch> copies_;
  HostBatch host_;
  std::vector<std::int32_t> scored_rows_;
  std::vector<ScoredToken> scored_tokens_;
  std::size_t num_rows_ = 0;          // rows of a table
  std::vector<TableRow> table_rows_;  // [tables, rows]
  std::vector<TablePart> new_parts_;
  Tensor device_table_;  // [tables * rows, max_blocks] int32; undefined: not uploaded yet
  std::vector<StepBatch> by_table_;  // the last upload, one per table, if there are several
  StepInputCounters counters_;
};

}  // namespace pagoda
