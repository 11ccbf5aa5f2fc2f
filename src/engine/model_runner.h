// ModelRunner: a plan in, tokens out. Device memory stops here.
//
// A step is two launches: forward(plan) needs only token ids and starts the model's graph with its
// KV writes; sample(plan) waits for the logits and draws. Belongs to the engine thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "batch/step_batch.h"
#include "core/status.h"
#include "engine/row_mask.h"
#include "engine/scheduler.h"
#include "engine/step_input.h"
#include "kv/kv_store.h"
#include "model/decoder.h"
#include "sampling/sampler.h"
#include "tensor/exec.h"

namespace pagoda {

// What a step gave one planned sequence. The vector keeps its memory from step to step.
struct SequenceOutput {
  std::vector<TokenLogprobs> scored;  // of the prompt's tokens behind the plan's scored rows
  Status score_error;                 // a row that cannot be scored: NaN
};

// A token drawn from a row: by the planned sequence, or by one of its forks.
struct SampleOutput {
  Sequence* sequence = nullptr;
  std::optional<TokenLogprobs> logprobs;  // where asked for
  std::span<const float> logits;          // [vocab]; the row, until the next forward()
};

struct StepOutput {
  std::vector<SampleOutcome> outcomes;      // in the plan's order, as Scheduler::commit wants them
  std::vector<SampleOutput> samples;        // one an outcome
  std::vector<SequenceOutput> of_sequence;  // one a planned sequence
};

// Counters for /metrics; they only grow.
struct RunnerCounters {
  std::uint64_t num_logits_rows = 0;          // that went through the last projection
  std::uint64_t num_logits_rows_skipped = 0;  // tokens whose logits nobody wanted
};

class ModelRunner {
 public:
  // Rows of prompt log-probabilities are projected this many at a time, so that memory does not
  // grow with the prompt.
  static constexpr int kScoreTileRows = 64;

  ModelRunner(Exec& exec, Decoder decoder, KvStore kv,
              std::vector<std::shared_ptr<const LogitsProcessor>> processors = {});
  virtual ~ModelRunner() = default;

  // Starts the step. After a failure the step's sequences must be given up: their cache is
  // undefined. kUnavailable: the device is gone, and no later step can work.
  virtual Status forward(const Plan& plan);
  // Ends it. Row errors stand in the outcomes; a Status is the whole step's, as above.
  virtual Result<const StepOutput*> sample(const Plan& plan);

  const Decoder& decoder() const { return decoder_; }
  const KvStore& kv() const { return kv_; }
  const RunnerCounters& counters() const { return counters_; }
  const StepInputCounters& input_counters() const { return input_.counters(); }

 private:
  void copy_blocks();
  Status evaluate();
  Status score_rows(const Plan& plan);
  Status score_tile(const Plan& plan, std::size_t first, std::size_t count);
  Status sample_rows(const Plan& plan);
  void sample_row(Sequence& sequence, std::span<const float> logits);

  Exec& exec_;
  Decoder decoder_;
  KvStore kv_;
  Sampler sampler_;
  RowMask row_mask_;
  StepInput input_;
  StepBatch batch_;
  HiddenState hidden_;
  Tensor logits_;  // [samples, vocab] float32
  std::vector<Tensor> roots_;
  StepOutput output_;
  RunnerCounters counters_;
};

}  // namespace pagoda
