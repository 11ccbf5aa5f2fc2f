// SteppedEngine: an EngineCore whose steps a test calls, so that the test decides what each step
// contains. Between steps every KV block without a holder, and its scales, are filled with NaN.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine_core.h"
#include "engine/model_runner.h"
#include "tests/support/run_to_end.h"

namespace pagoda {

struct SteppedEngineOptions {
  Backend backend = Backend::kCpu;
  int num_threads = 1;
  int block_size = 16;
  BlockOrder block_order = BlockOrder::kConsecutive;
  int num_blocks = 0;  // 0: as many as the engine takes by default
  int max_model_len = 0;
  int max_num_seqs = 16;
  int max_num_batched_tokens = 2048;
  std::optional<KvFormats> kv_cache_formats;  // absent: the backend's
  bool has_prefix_cache = false;
  std::string prefix_cache_dir;  // of the tier below the prefix cache; empty: no tier
  bool has_lookahead = false;
};

class SteppedEngine {
 public:
  // REQUIRES: the checkpoint can be loaded.
  SteppedEngine(const std::string& path, const SteppedEngineOptions& options);

  int vocab_size() const { return core_->limits().vocab_size; }
  const KvCacheInfo& kv_cache() const { return core_->limits().kv_cache; }

  // Returns the index of the request's first answer; its other samples' answers follow.
  std::size_t add(GenerationRequest request);
  // Ends a step and, with lookahead, starts the next one. Waits for blocks of the tier if nothing
  // can be computed without them. `seconds`: how long the step took, as the scheduler is told.
  void step(double seconds = 0);
  // Cancels a sample of the request whose first answer has this index.
  void cancel_sample(std::size_t first_answer, int sample_index);
  bool idle() const { return core_->idle(); }

  const std::vector<WholeAnswer>& answers() const { return answers_; }
  const Scheduler& scheduler() const { return core_->scheduler(); }
  EngineStats stats() const { return core_->stats(); }

 private:
  // Advances only in steps, which take as long as the test says.
  class StepClock final : public Clock {
   public:
    TimePoint now() const override { return now_; }
    void pass(double seconds) {
      now_ +=
          std::chrono::duration_cast<TimePoint::duration>(std::chrono::duration<double>(seconds));
    }

   private:
    TimePoint now_;
  };
  class TimedRunner;

  void poison();

  StepClock clock_;
  double step_seconds_ = 0;
  Exec* exec_ = nullptr;           // the core's
  ModelRunner* runner_ = nullptr;  // the core's
  std::unique_ptr<EngineCore> core_;
  std::vector<bool> is_poisoned_;  // by block
  std::vector<WholeAnswer> answers_;
};

}  // namespace pagoda
