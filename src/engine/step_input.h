// StepInput: a plan as a StepBatch, kept from step to step.
//
//   plan ──set()──▶ HostBatch ──upload()──▶ StepBatch
//
// The parts that change with each step are O(its tokens) and are written anew. Block tables are
// O(contexts) and are kept: a row whose sequence has stood there before is extended by the blocks
// that it got since. So a steady decode step touches O(sequences) words, whatever the contexts; a
// row is written whole where another sequence takes its place, or where its table did more than
// grow (BlockTable::epoch).
//
// On native backends the device's table is kept and extended in the same way. Elsewhere a step that
// may still run reads the last one, so a table that has changed is a new upload.
//
// Layers of several cache groups have a table each. Blocks that have been given back behind a
// window stay in a row, and no kernel reads them.
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

// A token of the step whose logits score the next one of its prompt.
struct ScoredToken {
  int sequence = 0;  // which one of the plan
  int token_id = 0;  // that is scored
};

// Counters for /metrics; they only grow.
struct StepInputCounters {
  std::uint64_t num_words = 0;  // of host arrays that were written
  // Steps all of whose sequences have consecutive blocks, so that attention reads straight through;
  // and the others.
  std::uint64_t num_contiguous_steps = 0;
  std::uint64_t num_paged_steps = 0;
};

class StepInput {
 public:
  explicit StepInput(int block_size, std::vector<KvTable> tables = {{}});

  // Fills the host's arrays of a step; valid until the next call.
  const HostBatch& set(const Plan& plan);
  // Uploads those to the device. The host's have to outlive what comes of it, and `exec` this
  // object's last upload.
  StepBatch upload(Exec& exec);
  // Returns the part of an uploaded step's block copies that is for layers whose blocks have
  // `num_parts` parts.
  StepBatch copies_of(const StepBatch& batch, int num_parts) const;

  // Forgets which sequences the rows of the table have. A new scheduler counts arrivals from zero
  // again, so an equal arrival need not be the same sequence.
  void forget_rows() { table_rows_.assign(table_rows_.size(), {}); }

  const HostBatch& host() const { return host_; }
  std::span<const std::int32_t> scored_rows() const { return scored_rows_; }  // tokens of the step
  std::span<const ScoredToken> scored_tokens() const { return scored_tokens_; }  // one each
  const StepInputCounters& counters() const { return counters_; }

 private:
  // The contents of a row of the table.
  struct TableRow {
    std::uint64_t arrival = 0;  // of its sequence: the identity
    std::uint64_t epoch = 0;
    int num_blocks = 0;  // 0: nothing
    // Blocks from this one on are consecutive, and slot 0 of the sequence would be here.
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
  // The step's copies for each number of parts that tables have; the host's are all of them.
  std::map<int, HostBatch> copies_;
  HostBatch host_;
  std::vector<std::int32_t> scored_rows_;
  std::vector<ScoredToken> scored_tokens_;
  std::size_t num_rows_ = 0;          // of a table
  std::vector<TableRow> table_rows_;  // [tables, rows]
  std::vector<TablePart> new_parts_;
  Tensor device_table_;              // [tables * rows, max_blocks] int32; undefined: to be made
  std::vector<StepBatch> by_table_;  // of the last upload, where there are several
  StepInputCounters counters_;
};

}  // namespace pagoda
