// StepSampler: the tokens that come of a step's rows of logits, with their log-probabilities, the
// scores of prompts and the hidden states that are pooled. It decides whether the host or ops draw
// a row, and when.
//
// Without lookahead the host draws every row (engine/host_draws.h). With lookahead ops draw what
// they can, and the next step's forward may follow before sample(): it takes the ids where they
// are. Where nothing depends on the output, or penalties whose counts are on the device too, the
// forward's own evaluation draws them. Words that are banned and grammars need the token before:
// what they change is known when that has been committed, and draw() follows then, while the
// forward runs. sample() draws the rows that ops cannot draw (DRY, mirostat, processors of logits,
// ...). It comes before the next forward then.
//
// Belongs to the engine thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/status.h"
#include "engine/host_draws.h"
#include "engine/row_masks.h"
#include "engine/step_input.h"
#include "engine/step_runner.h"
#include "model/decoder.h"
#include "sampling/device/row_changes.h"
#include "sampling/device/row_draws.h"
#include "sampling/device/row_log_probs.h"
#include "sampling/device/row_penalties.h"
#include "tensor/exec.h"

namespace pagoda {

// The rows of one step, from its forward to its sample(). The first five are the forward's.
struct StepRows {
  Tensor logits;              // [rows, vocab] float32; undefined: none
  bool reads_hidden = false;  // scores or pools
  HiddenState hidden;         // where it does
  std::vector<std::int32_t> scored_rows;
  std::vector<ScoredToken> scored_tokens;  // one a scored row

  bool draws_ahead = false;        // ops draw all rows, and nothing is scored or pooled
  bool waits_for_history = false;  // until StepSampler::draw()
  int num_by_ops = 0;              // rows
  std::vector<Status> row_errors;  // [outcomes], of what ops draw
  Tensor drawn;                    // [outcomes] int32: what ops draw (sampling/device/row_draws.h)
  LogProbs log_probs;              // of the outcomes that ask, where draws_ahead
};

struct StepSamplerOptions {
  std::vector<std::shared_ptr<const LogitsProcessor>> logits_processors;
  bool has_lookahead = false;  // worth it where Exec::is_asynchronous()
};

class StepSampler {
 public:
  // Rows of prompts are scored and pooled this many at a time, so that memory does not grow with the
  // prompt.
  static constexpr int kTileRows = 64;

  // REQUIRES: `exec` and `decoder` outlive this.
  StepSampler(Exec& exec, const Decoder& decoder, const StepSamplerOptions& options);

  // Decides whether the host or ops draw each of the step's rows, and draws those that ops can draw
  // now.
  void begin(const Plan& plan, StepRows& rows);
  // Draws the rows that wait for the tokens before them, which have been committed by now.
  Status draw(const Plan& plan, StepRows& rows);
  // Adds what begin() and draw() have made, for an evaluation.
  void add_roots(const StepRows& rows, std::vector<Tensor>& roots) const;
  // Draws the other rows, scores prompts and waits for all of it. See StepRunner::sample().
  Result<const StepOutput*> sample(const Plan& plan, StepRows& rows, bool wants_logits);
  // Uploads the tokens of the last step that was sampled: [outcomes] int32.
  Tensor upload_tokens();
  // Forgets what steps have counted that were given up.
  void forget() { row_penalties_.forget(); }

  bool has_lookahead() const { return has_lookahead_; }

  // Calls every op that may be done to logits [rows, vocab], so that a backend lists their kernels.
  static void call_ops(Exec& exec, const Tensor& logits);

 private:
  // Where the rows of a step are, on the host.
  struct HostRows {
    std::span<const float> logits;          // [rows, vocab], or empty
    std::span<const std::int32_t> drawn;    // [outcomes], or empty
    std::optional<HostLogProbs> log_probs;  // where any are asked for and known
  };

  bool is_drawn_by_ops(const Sequence& sequence) const;
  void share_draws(const Plan& plan, StepRows& rows);
  bool needs_history(const Sequence& sequence, int context_len, bool has_room) const;
  void draw_rows(const Plan& plan, StepRows& rows);
  void add_row(Sequence& sequence, int context_len, StepRows& rows);
  void prepare_penalties(const Plan& plan, StepRows& rows);
  Tensor logits_of_outcomes(const Plan& plan, const Tensor& logits);
  void compute_log_probs(const Plan& plan, StepRows& rows);
  Result<HostLogProbs> read_log_probs(const LogProbs& log_probs);
  Status score_rows(const Plan& plan, const StepRows& rows);
  Status score_tile(const Plan& plan, const StepRows& rows, std::size_t first, std::size_t count);
  Status pool_rows(const Plan& plan, const StepRows& rows);
  Status pool_tile(const StepRows& rows, int first_row, int num_rows, std::vector<float>& pooled);
  Result<HostRows> read_rows(const StepRows& rows, bool wants_logits);
  void sample_rows(const Plan& plan, const StepRows& rows, const HostRows& read);
  void take_drawn(std::int32_t drawn, const Status& row_error);
  void take_log_probs(const HostLogProbs& given);

  Exec& exec_;
  const Decoder& decoder_;
  bool has_lookahead_ = false;
  bool has_processors_ = false;
  HostDraws host_draws_;
  RowMasks row_masks_;
  RowChanges row_changes_;
  RowPenalties row_penalties_;
  RowDraws row_draws_;
  RowLogProbs row_log_probs_;
  std::vector<std::int32_t> ids_;
  StepOutput output_;
};

}  // namespace pagoda
