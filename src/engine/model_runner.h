// ModelRunner: computes the tokens of a plan. Its callers handle no device memory.
//
// A step is two launches: forward(plan) needs only token ids and starts the model's graph with its
// KV writes; sample(plan) waits for the logits and draws.
//
// With lookahead the next step's forward reads the drawn ids on the device. step_sampler.h says
// whether the host or ops draw a row, and when.
//
// Belongs to the engine thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "batch/step_batch.h"
#include "core/status.h"
#include "engine/step_input.h"
#include "engine/step_runner.h"
#include "engine/step_sampler.h"
#include "kv/kv_store.h"
#include "model/decoder.h"
#include "tensor/exec.h"

namespace pagoda {

class ModelRunner final : public StepRunner {
 public:
  // Makes a runner over these parts. host_reads_blocks: the host reads blocks, so sample() returns
  // only when the step has written its blocks, even if it samples nothing.
  ModelRunner(Exec& exec, Decoder decoder, KvStore kv, const StepSamplerOptions& options = {},
              bool host_reads_blocks = false);
  ModelRunner(const ModelRunner&) = delete;  // the sampler refers to decoder_
  ModelRunner& operator=(const ModelRunner&) = delete;
  Status forward(const Plan& plan) override;
  Status draw(const Plan& plan) override;
  bool draws_ahead() const override { return steps_[newest_].rows.draws_ahead; }
  Result<const StepOutput*> sample(const Plan& plan, bool wants_logits) override;
  void abandon() override;
  bool prefault(int first_block, bool beside_prompts) override;
  bool has_lookahead() const override { return sampler_.has_lookahead(); }
  RunnerStats stats() const override;

  const KvStore& kv() const { return kv_; }

 private:
  struct Step {
    bool in_flight = false;
    StepRows rows;
    Tensor written;  // the last array of keys or values, if the host reads blocks
  };

  Step& start_step(const Plan& plan);
  void fill_token_ids(StepBatch& batch);
  void copy_blocks(const StepBatch& batch);
  Status evaluate(const StepRows& rows);

  Exec& exec_;
  Decoder decoder_;
  KvStore kv_;
  const bool host_reads_blocks_;
  const std::int64_t num_prefaulted_tokens_;  // for which prefault() pages in memory ahead
  StepInput input_;
  StepSampler sampler_;
  std::array<Step, 2> steps_;
  int newest_ = 0;  // index in steps_
  std::vector<Tensor> roots_;
  std::uint64_t num_logits_rows_ = 0;
  std::uint64_t num_logits_rows_skipped_ = 0;
  std::uint64_t num_decode_kv_bytes_ = 0;
  std::uint64_t num_decode_expert_bytes_ = 0;
};

}  // namespace pagoda
