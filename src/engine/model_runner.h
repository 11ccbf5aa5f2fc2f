// ModelRunner: a plan in, tokens out. Device memory stops here.
//
// A step is two launches: forward(plan) needs only token ids and starts the model's graph with its
// KV writes; sample(plan) waits for the logits and draws.
//
// With lookahead rows are drawn by ops, and the next step's forward may follow before sample(): it
// takes the ids where they are. Where nothing depends on the output, or penalties whose counts are
// on the device too, the forward's own evaluation draws them. Words that are banned and grammars
// need the token before: what they change is known when that has been committed, and draw() follows
// then, while the forward runs. What ops do not do (DRY, mirostat, processors of logits, ...)
// sample() does, which comes before the next forward then; all else of the host's work on a step is
// still done while the next one runs.
//
// A grammar's mask may take longer than a step. Without lookahead a step's rows wait for theirs 10
// ms together, or 100 where nothing else comes of the step: decodes alone, none with its mask. The
// draw of one whose mask is not there then is deferred, and the others go on. With lookahead, where
// the next step is launched for tokens that are not known yet, all rows wait.
//
// Belongs to the engine thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "batch/step_batch.h"
#include "core/clock.h"
#include "core/status.h"
#include "engine/row_masks.h"
#include "engine/step_input.h"
#include "engine/step_runner.h"
#include "kv/kv_store.h"
#include "model/decoder.h"
#include "sampling/row_changes.h"
#include "sampling/row_draws.h"
#include "sampling/row_log_probs.h"
#include "sampling/row_penalties.h"
#include "sampling/sampler.h"
#include "tensor/exec.h"

namespace pagoda {

struct ModelRunnerOptions {
  std::vector<std::shared_ptr<const LogitsProcessor>> logits_processors;
  bool has_lookahead = false;  // worth it where Exec::is_asynchronous()
};

class ModelRunner final : public StepRunner {
 public:
  // Rows of prompt log-probabilities are projected this many at a time, so that memory does not
  // grow with the prompt.
  static constexpr int kScoreTileRows = 64;

  ModelRunner(Exec& exec, Decoder decoder, KvStore kv, ModelRunnerOptions options = {});
  Status forward(const Plan& plan) override;
  Status draw(const Plan& plan) override;
  bool draws_ahead() const override { return steps_[newest_].draws_ahead; }
  Result<const StepOutput*> sample(const Plan& plan, bool wants_logits) override;
  void abandon() override;
  bool prefault(int first_block, bool beside_prompts) override;
  bool has_lookahead() const override { return options_.has_lookahead; }
  RunnerStats stats() const override;

  const KvStore& kv() const { return kv_; }

 private:
  // What a step leaves behind for sample().
  struct Step {
    bool in_flight = false;
    bool draws_ahead = false;        // all its rows, by ops
    bool waits_for_history = false;  // until draw()
    int num_by_ops = 0;              // rows
    std::vector<Status> row_errors;  // [outcomes], of what ops draw
    HiddenState hidden;              // of a step that scores
    Tensor logits;                   // [rows, vocab] float32
    Tensor drawn;        // [outcomes] int32: what the device draws (sampling/row_draws.h)
    LogProbs log_probs;  // of the outcomes that ask; with the draws where all are the device's
    std::vector<std::int32_t> scored_rows;
    std::vector<ScoredToken> scored_tokens;
  };
  // Where the rows of a step are, on the host.
  struct Rows {
    std::span<const float> logits;        // [rows, vocab], or empty
    std::span<const std::int32_t> drawn;  // [outcomes], or empty
  };

  // A row that the host draws.
  struct HostRow {
    std::size_t outcome;
    Sequence* sequence;
    RowSampling sampling;
  };

  Step& start_step();
  void fill_token_ids(StepBatch& batch);
  void copy_blocks(const StepBatch& batch);
  bool is_drawn_by_ops(const Sequence& sequence) const;
  void share_draws(const Plan& plan, Step& step);
  bool needs_history(const Sequence& sequence, int context_len, bool has_room) const;
  RowSampling row_of(const Sequence& sequence, int context_len) const;
  SamplerState* synced_state(Sequence& sequence);
  void add_row(Sequence& sequence, int context_len, Step& step);
  void draw_rows(const Plan& plan, Step& step);
  void prepare_penalties(const Plan& plan, Step& step);
  void compute_log_probs(const Plan& plan, Step& step);
  Tensor upload_outcomes();
  Tensor logits_of_outcomes(const Plan& plan, const Tensor& logits);
  Status evaluate(const Step& step);
  void add_draws(const Step& step);
  void add_roots(const LogProbs& log_probs);
  Result<HostLogProbs> log_probs_on_host(const LogProbs& log_probs);
  Status score_rows(const Plan& plan, const Step& step);
  Status score_tile(const Plan& plan, const Step& step, std::size_t first, std::size_t count);
  Result<Rows> read_rows(const Step& step, bool wants_logits);
  Status sample_rows(const Plan& plan, const Step& step, bool wants_logits);
  void take_drawn(std::int32_t drawn, const Status& row_error);
  Status take_log_probs(const Plan& plan, Step& step);
  void add_host_row(Sequence& sequence, std::span<const float> logits);
  bool may_defer(const Sequence& sequence) const;
  void take_mask(HostRow row);
  void wait_for_masks(const Plan& plan);
  void draw_host_rows();

  Exec& exec_;
  Decoder decoder_;
  KvStore kv_;
  const std::int64_t num_prefaulted_tokens_;  // that prefault() has memory for
  ModelRunnerOptions options_;
  std::vector<Sampler> samplers_;  // one a thread
  RowMasks row_masks_;
  RowChanges row_changes_;
  RowPenalties row_penalties_;
  StepInput input_;
  RowDraws row_draws_;
  RowLogProbs row_log_probs_;
  std::array<Step, 2> steps_;
  int newest_ = 0;  // of steps_
  std::vector<HostRow> host_rows_;
  std::vector<HostRow> rows_without_mask_;  // of the step that is sampled
  Clock::TimePoint mask_deadline_;          // its
  std::vector<std::int32_t> ids_;
  std::vector<Tensor> roots_;
  StepOutput output_;
  std::uint64_t num_logits_rows_ = 0;
  std::uint64_t num_logits_rows_skipped_ = 0;
};

}  // namespace pagoda
