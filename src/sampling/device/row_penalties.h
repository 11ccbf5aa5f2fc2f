// RowPenalties: repetition, frequency and presence penalties of a step's rows, from counts of the
// tokens that each sequence has seen. The counts are on the device, and a step adds the tokens that
// it draws. So the next step need not wait until the host has read these tokens.
//
// Each penalised sequence has a histogram, a row of the counts. Histograms are a cache. A
// sequence's histogram is missing or out of date:
// - at its first draw;
// - if it was not drawn for so long that another sequence took its histogram;
// - if the table had to grow.
// A new histogram is filled from the history, all of which the host must know. With a window
// (sampling/penalty_window.h), a step takes back the token that has left it. The host knows this
// token, since it is never the last one. The bits are the Sampler's in all cases.
//
// The calls of a step, in this order: clear(), add() each row, prepare(), apply(), count().
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
  // A sequence's tokens so far. `tokens` may lack the last one if the counts have it.
  struct History {
    std::uint64_t sequence = 0;  // never reused
    std::span<const int> tokens;
    int num_prompt_tokens = 0;
    int num_tokens = 0;  // tokens.size(), or one more
  };

  explicit RowPenalties(int vocab_size);

  // Returns whether the counts are those of the sequence's first `num_tokens` tokens.
  bool has_counted(std::uint64_t sequence, int num_tokens) const;
  // Returns whether this many rows can be penalised without a larger table, filled anew.
  bool has_room(int num_rows) const { return num_rows <= static_cast<int>(histograms_.size()); }

  void clear();  // keeps the memory
  // Adds the next row. `history` must live until prepare(), `params` until apply(); the counts
  // include the row if `params` penalise.
  void add(const SamplingParams& params, const History& history);
  // Brings the step's histograms up to date. kResourceExhausted if there is no memory for the
  // counts: apply() and count() then do nothing.
  Status prepare(Exec& exec);
  // Returns the changed logits [rows, vocab]; the same tensor if nothing changes.
  Tensor apply(Exec& exec, const Tensor& logits) const;
  // Adds the drawn tokens, [rows] int32, to the counts. A negative number is no token and is
  // ignored.
  void count(Exec& exec, const Tensor& drawn);

  // Returns the counts, [histograms, vocab] int32, an output of the step like its tokens. The
  // tensor is undefined while there are no counts.
  const Tensor& counts() const { return counts_; }
  // Calls every op that apply() and count() may call for logits [rows, vocab] and drawn [rows]
  // int32, so that a backend lists their kernels.
  static void call_ops(Exec& exec, const Tensor& logits, const Tensor& drawn);

  // Forgets all counts, after a step that failed: what it wrote to them is unknown.
  void forget();

 private:
  struct Histogram {
    std::uint64_t sequence = 0;
    int num_tokens = -1;  // -1: belongs to no sequence
    int num_left = 0;     // how many of these have left the window
    std::uint64_t last_step = 0;
  };
  struct Row {
    const SamplingParams* params = nullptr;  // null: not penalised
    History history;
  };

  // Counts for the device to change. Entries are distinct.
  struct Changes {
    std::vector<std::int32_t> cleared, histograms, token_ids, times;

    void add(std::int32_t histogram, int token_id, int num_times);
  };

  bool is_penalised() const { return num_penalised_ > 0; }
  Status make_room(Exec& exec);
  void find_histograms();
  int take_oldest();
  void update(Exec& exec);
  void fill(const Row& row, std::int32_t histogram, Changes& changes);
  void take_back(const Row& row, std::int32_t histogram, Changes& changes);

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
