// StepSampler: draws the tokens of a step's rows of logits. It also computes their
// log-probabilities, the scores of prompts and the hidden states that are pooled. It decides
// whether the host or ops draw a row, and when.
//
// Without lookahead the host draws every row (engine/host_draws.h). With lookahead ops draw the
// rows that they support, and the next step's forward may be launched before sample(): it reads the
// ids on the device. A row whose draw needs no earlier output, or only penalties whose counts are
// on the device, is drawn in the forward's own evaluation. Banned words and grammars depend on the
// token before. Such rows are drawn by draw() once that token is committed, while the forward runs.
// Rows that ops do not support (DRY, mirostat, processors of logits, ...) are drawn by sample(),
// and then the next forward waits for it.
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

// The rows of one step, from its forward to its sample(). The forward sets the first five fields.
struct StepRows {
  Tensor logits;              // [rows, vocab] float32; undefined: none
  bool reads_hidden = false;  // some row is scored or pooled
  HiddenState hidden;         // if reads_hidden
  std::vector<std::int32_t> scored_rows;
  std::vector<ScoredToken> scored_tokens;  // one per scored row

  bool draws_ahead = false;        // ops draw all rows, and nothing is scored or pooled
  bool waits_for_history = false;  // nothing is drawn before StepSampler::draw()
  int num_by_ops = 0;              // rows that ops draw
  std::vector<Status> row_errors;  // [outcomes]: errors of the rows that ops draw
  Tensor drawn;        // [outcomes] int32: tokens drawn by ops (sampling/device/row_draws.h).
  LogProbs log_probs;  // of the outcomes that ask for them
};

struct StepSamplerOptions {
  std::vector<std::shared_ptr<const LogitsProcessor>> logits_processors;
  bool has_lookahead = false;  // useful if Exec::is_asynchronous()
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
  // Draws the rows that depend on their previous tokens. REQUIRES: those tokens have been
  // committed.
  Status draw(const Plan& plan, StepRows& rows);
  // Adds the results of begin() and draw() to the roots of an evaluation.
  void add_roots(const StepRows& rows, std::vector<Tensor>& roots) const;
  // Draws the other rows, scores and pools prompts, and waits for all results. See
  // StepRunner::sample().
  Result<const StepOutput*> sample(const Plan& plan, StepRows& rows, bool wants_logits);
  // Uploads the tokens of the last step that was sampled: [outcomes] int32.
  Tensor upload_tokens();
  // Forgets the penalty counts of steps that were abandoned.
  void forget() { row_penalties_.forget(); }

  bool has_lookahead() const { return has_lookahead_; }

  // Calls every op that may change or read logits [rows, vocab], so that a backend lists their
  // kernels.
  static void call_ops(Exec& exec, const Tensor& logits);

 private:
  // The results of a step's rows, on the host.
  struct HostRows {
    std::span<const float> logits;          // [rows, vocab], or empty
    std::span<const std::int32_t> drawn;    // [outcomes], or empty
    std::optional<HostLogProbs> log_probs;  // if any are asked for and computed
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
