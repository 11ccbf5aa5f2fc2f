// RowPenalties: repetition, frequency and presence penalties of a step's rows, over counts of what
// their sequences have seen. The counts live on the device, and a step bumps them by what it draws.
// So the next step need not wait until the host has read its tokens.
//
// Each sequence that is penalised has a histogram, a row of the counts. Histograms are a cache. One
// may be missing or out of step:
// - at a sequence's first draw;
// - where a sequence has not been drawn for so long that others took its place;
// - where the table had to grow.
// It is then filled again from the history, which the host must know to its end. Either way the
// bits are the same, those of the Sampler.
//
// Of a step, in this order: clear(), add() each row, prepare(), apply(), count().
// Thread-compatible.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/status.h"
#include "sampling/sampling_params.h"
#include "tensor/exec.h"

namespace pagoda {

class RowPenalties {
 public:
  // A sequence's tokens so far. The host may not know the last one yet, where the counts have it.
  struct History {
    std::uint64_t sequence = 0;  // its identity, forever
    std::span<const int> tokens;
    int num_prompt_tokens = 0;
    int num_tokens = 0;  // tokens.size(), or one more
  };

  explicit RowPenalties(int vocab_size);

  // Returns whether the counts are those of the sequence's first `num_tokens` tokens.
  bool has_counted(std::uint64_t sequence, int num_tokens) const;
  // Returns whether so many rows of a step can be penalised without filling all histograms anew.
  bool has_room(int num_rows) const { return num_rows <= static_cast<int>(histograms_.size()); }

  void clear();  // keeps the memory
  // Adds the next row; `history` has to live until prepare(), and counts where `params` penalise.
  void add(const SamplingParams& params, const History& history);
  // Uploads the step's histograms. kResourceExhausted where there is no memory for the counts:
  // apply() and count() do nothing then.
  Status prepare(Exec& exec);
  // Returns the logits [rows, vocab], changed; the same tensor where nothing changes.
  Tensor apply(Exec& exec, const Tensor& logits) const;
  // Counts drawn [rows] int32: a token, or a negative number, which counts for nothing.
  void count(Exec& exec, const Tensor& drawn);

  // Returns [histograms, vocab] int32, an output of the step like its tokens; undefined while there
  // is none.
  const Tensor& counts() const { return counts_; }
  // Calls every op that this may call for logits [rows, vocab] and drawn [rows] int32, so that a
  // backend lists their kernels.
  static void call_ops(Exec& exec, const Tensor& logits, const Tensor& drawn);

  // Forgets all counts after a step that failed: what it wrote is unknown.
  void forget();

 private:
  struct Histogram {
    std::uint64_t sequence = 0;
    int num_tokens = -1;  // -1: no sequence's
    std::uint64_t last_step = 0;
  };
  struct Row {
    const SamplingParams* params = nullptr;  // null: not penalised
    History history;
  };

  bool is_penalised() const { return num_penalised_ > 0; }
  Status make_room(Exec& exec);
  void find_histograms();
  int take_oldest();
  void fill(Exec& exec);

  int vocab_size_;
  std::uint64_t step_ = 0;
  Tensor counts_;
  std::vector<Histogram> histograms_;
  std::unordered_map<std::uint64_t, int> histogram_of_sequence_;
  std::vector<Row> rows_;
  int num_penalised_ = 0;
  std::vector<std::int32_t> histogram_of_;  // [rows]; -1: none
};

}  // namespace pagoda
